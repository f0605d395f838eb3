// Package ui is the web console: plain ES modules, styles and vendored libraries, embedded in the binary and served under a strict
// content security policy. There is no build step; what stands under static/ is what the browser runs.
//
// The console is a client of the HTTP API like any other and holds no state of its own: it reads the queries under /v1/, and listens to
// notifications that tell it when to read them again. Views never open a connection and never name a topic; they subscribe
// through the narrow functions of static/lib/realtime/.
//
// Where things stand under static/:
//
//	app.js, shell.js, router.js   start, frame with navigation, addresses
//	views/                        one file for each screen
//	components/                   what several screens show
//	lib/                          the API client, formats, exact JSON
//	lib/realtime/                 live connections; usable by other pages as one module
//	css/                          tokens first, then what is made of them
//	vendor/                       libraries as released, with their licences and versions
//
//	console, err := ui.New()
//	…
//	mux.Handle("/", console)
package ui
