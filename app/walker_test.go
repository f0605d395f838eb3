package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/posthorn/posthorn/app/records"
)

// walker follows a runbook to the letter: the command lines are those of its Markdown, run by a shell in the order in which they stand.
type walker struct {
	*testing.T
	dir, folder string // where its commands run, and the data folder
	path        string // where the shell finds the programs
	build       string // the program that serves
	p           *process
	token       string
	top         string            // posthorn.yaml, without its settings
	settings    map[string]string // of posthorn.yaml
	fill        map[string]string // what the operator puts in for NAME, ID …
	target      string            // a receiver, which answers with status
	status      atomic.Int64
}

func newWalker(t *testing.T) *walker {
	t.Helper()
	w := &walker{T: t, dir: t.TempDir(), build: binary(t), top: `egress: {allow: ["127.0.0.0/8"]}`, fill: map[string]string{}, settings: map[string]string{
		"alert-interval":    "{value: 100ms, observation: a test does not wait}",
		"alert-raise-after": "{value: 200ms, observation: a test does not wait}",
		"alert-clear-after": "{value: 200ms, observation: a test does not wait}",
	}}
	w.folder = filepath.Join(w.dir, "data")
	w.path = filepath.Dir(w.build) + string(filepath.ListSeparator) + os.Getenv("PATH")
	w.fill["DATA-DIR"], w.fill["COPY"] = w.folder, filepath.Join(w.dir, "copy")
	commandOf(t, w.build, "records", "new", "integration-event", "order-placed", "--data-dir", w.folder)
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(int(w.status.Load())) }))
	t.Cleanup(receiver.Close)
	w.target = receiver.URL
	w.status.Store(http.StatusOK)
	return w
}

// start starts the program with posthorn.yaml as it is now, instead of the one that runs.
func (w *walker) start(args ...string) {
	w.Helper()
	w.stop()
	text := w.top + "\nsettings:\n"
	for name, value := range w.settings {
		text += "  " + name + ": " + value + "\n"
	}
	if err := os.WriteFile(filepath.Join(w.folder, ConfigName), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	_ = os.Remove(filepath.Join(w.folder, "ready.json")) // a kill leaves it
	w.p = launchBuild(w.T, w.build, w.folder, args...).ready(w.T)
	if w.token == "" {
		w.token = newToken(w.T, w.folder)
	}
}

func (w *walker) stop() {
	w.Helper()
	if w.p != nil {
		stop(w.T, w.p)
		w.p = nil
	}
}

// get reads from the API.
func (w *walker) get(path string) string {
	w.Helper()
	_, text := w.p.call(w.T, w.token, http.MethodGet, path, "")
	return text
}

// post changes something by the API.
func (w *walker) post(path, body string, want int) {
	w.Helper()
	w.p.must(w.T, w.token, http.MethodPost, path, body, want)
}

// send stages a message, and has it fill ID.
func (w *walker) send(id, more string) {
	w.Helper()
	w.post("/v1/messages", fmt.Sprintf(`{"id":%q,"type":"order-placed","payload":{"order":1}%s}`, id, more), http.StatusCreated)
	w.fill["ID"] = id
}

// until waits for a message to have a delivery in a state, and has that one fill DELIVERY.
func (w *walker) until(id, handler, state string) {
	w.Helper()
	eventually(w.T, id+" is "+state, func() bool {
		var message struct {
			Deliveries []struct {
				ID             int64
				Handler, State string
			}
		}
		if err := json.Unmarshal([]byte(w.get("/v1/messages/"+id)), &message); err != nil {
			return false
		}
		for _, d := range message.Deliveries {
			if d.Handler == handler && d.State == state {
				w.fill["DELIVERY"] = fmt.Sprint(d.ID)
				return true
			}
		}
		return false
	})
}

// raised waits for an alert, and sees that it names the runbook; cleared waits for its end.
func (w *walker) raised(alert, runbook string) {
	w.Helper()
	eventually(w.T, alert+" is raised", func() bool {
		text := w.get("/v1/alerts")
		return strings.Contains(text, `"alert":"`+alert+`"`) && strings.Contains(text, `"`+runbook+`"`)
	})
}

func (w *walker) cleared(alert string) {
	w.Helper()
	eventually(w.T, alert+" is cleared", func() bool { return !strings.Contains(w.get("/v1/alerts"), alert) })
}

var filled = regexp.MustCompile(`\b(APP-DB|DATA-DIR|COPY|NAME|DELIVERY|ID|TYPE|PAYLOAD)\b`)

// walk runs a runbook. before is what the operator, or the world, does before the line that begins so; exits are lines that end otherwise than
// with 0. One that names no line is an error, as is a placeholder that nobody fills.
func (w *walker) walk(runbook string, before map[string]func(), exits map[string]int) {
	w.Helper()
	seen, wanted, walked := map[string]bool{}, map[string]bool{}, 0
	for begin := range before {
		wanted[begin] = true
	}
	for begin := range exits {
		wanted[begin] = true
	}
	for _, block := range blocks(w.T, runbook) {
		if block[0] == "settings:" {
			for _, line := range block[1:] {
				name, value, _ := strings.Cut(line, ": ")
				w.settings[name] = value
			}
			w.start()
			continue
		}
		for _, line := range block {
			for begin, do := range before {
				if strings.HasPrefix(line, begin) && !seen[begin] {
					seen[begin] = true
					do()
				}
			}
			want := 0
			for begin, code := range exits {
				if strings.HasPrefix(line, begin) {
					seen[begin], want = true, code
				}
			}
			w.line(filled.ReplaceAllStringFunc(line, func(name string) string {
				value, ok := w.fill[name]
				if !ok {
					w.Fatalf("%s: nobody fills %s in: %s", runbook, name, line)
				}
				return value
			}), want)
			walked++
		}
	}
	if len(seen) != len(wanted) || walked == 0 {
		w.Errorf("%s has %d lines, and not all that were expected: seen %v", runbook, walked, seen)
	}
}

// line runs one line.
func (w *walker) line(line string, want int) {
	w.Helper()
	switch words := strings.Fields(line); {
	case words[0] == "posthorn" && words[1] == "serve":
		w.start(words[2:]...)
	case words[0] == "curl":
		w.get(strings.TrimPrefix(words[2], "http://127.0.0.1:7678"))
	case words[0] == "date", words[0] == "timedatectl", words[0] == "df", words[0] == "dmesg": // the machine's own, which not every machine has
	default:
		run := exec.Command("sh", "-c", line)
		run.Dir, run.Env = w.dir, append(os.Environ(), "PATH="+w.path, "POSTHORN_DATA_DIR="+w.folder)
		out, err := run.CombinedOutput()
		if run.ProcessState == nil || run.ProcessState.ExitCode() != want {
			w.Fatalf("%s: %v, want exit %d\n%s", line, err, want, out)
		}
		w.Logf("%s\n%s", line, out)
	}
}

// blocks are the indented blocks of a runbook, each by its lines.
func blocks(t *testing.T, runbook string) (list [][]string) {
	t.Helper()
	set, err := records.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records.List[*records.Runbook](set) {
		if r.ID != runbook {
			continue
		}
		for paragraph := range strings.SplitSeq(r.Body, "\n\n") {
			if paragraph = strings.Trim(paragraph, "\n"); !strings.HasPrefix(paragraph, "    ") {
				continue
			}
			var block []string
			for line := range strings.Lines(paragraph) {
				block = append(block, strings.TrimSpace(line))
			}
			list = append(list, block)
		}
	}
	if len(list) == 0 {
		t.Fatalf("the runbook %s has no commands", runbook)
	}
	return list
}
