package sink_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/posthorn/posthorn/app/sink"
)

// A receiver that handles a message, loses the answer, and gets the message again.
func Example() {
	receiver, err := sink.New(sink.Config{Misbehaviour: sink.Misbehaviour{Duplicates: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer receiver.Close()
	for range 2 {
		request := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(`{"order":1001}`))
		request.Header.Set("webhook-id", "order-1001")
		answer := httptest.NewRecorder()
		receiver.ServeHTTP(answer, request)
		fmt.Print(answer.Code, " ", answer.Body)
	}
	fmt.Println("handled", receiver.Stats().Handled)
	// Output:
	// 500 {"handled":true,"problem":"","repeated":false,"verified":false}
	// 200 {"handled":false,"problem":"","repeated":true,"verified":false}
	// handled 1
}
