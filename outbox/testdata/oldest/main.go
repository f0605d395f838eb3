// Oldest runs the statements of its standard input, one a line, on a new database of the oldest SQLite that the schema serves, after
// the schema named by its argument. It is a module of its own, because one program holds one version of the driver.
package main

import (
	"bufio"
	"database/sql"
	"fmt"
	"log"
	"os"
	"strings"

	_ "modernc.org/sqlite"
)

func main() {
	schema, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	var version string
	if err := db.QueryRow(`SELECT sqlite_version()`).Scan(&version); err != nil {
		log.Fatal(err)
	}
	fmt.Println("version", version)
	for range 2 { // the schema may be run again
		if _, err := db.Exec(string(schema)); err != nil {
			log.Fatalf("schema: %v", err)
		}
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		rows, err := db.Query(in.Text())
		if err != nil {
			fmt.Println("refused", err)
			continue
		}
		fmt.Println(read(rows))
	}
}

// read returns all values of the rows, or the error that ended them.
func read(rows *sql.Rows) string {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "refused " + err.Error()
	}
	out := []string{"ok"}
	for rows.Next() {
		values := make([]any, len(columns))
		pointers := make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return "refused " + err.Error()
		}
		for _, v := range values {
			out = append(out, fmt.Sprint(v))
		}
	}
	if err := rows.Err(); err != nil {
		return "refused " + err.Error()
	}
	return strings.Join(out, " ")
}
