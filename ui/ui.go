package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed static
var embedded embed.FS

// policy is the content security policy of every answer. Nothing comes from another origin, nothing inline runs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// prefix is where files stand. Behind it comes the version of all files together, so that their relative imports carry it too and
// a browser may keep each of them for ever; without the version they are checked again at each use.
const prefix = "/static/"

const versionLength = 16

const (
	cacheForever = "public, max-age=31536000, immutable"
	cacheChecked = "no-cache"
)

// views are the first path segments that the console routes by itself, whatever follows: a document's id may look like a file name.
var views = []string{"", "messages", "destinations", "documents", "setup", "sign-in"}

// file is one embedded file, ready to be sent.
type file struct {
	body, zipped []byte
	etag         string
	contentType  string
}

// Console is the [http.Handler] of the web console.
type Console struct {
	version string
	files   map[string]*file
	index   *file
}

// New reads the embedded files. Its error means that the program was built wrong.
func New() (*Console, error) {
	static, err := fs.Sub(embedded, "static")
	if err != nil {
		return nil, fmt.Errorf("open embedded files: %w", err)
	}
	return newConsole(static)
}

func newConsole(static fs.FS) (*Console, error) {
	c := &Console{files: map[string]*file{}}
	whole := sha256.New()
	err := fs.WalkDir(static, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(static, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(whole, "%s %d\n", name, len(body))
		whole.Write(body)
		if c.files[name], err = newFile(name, body); err != nil {
			return fmt.Errorf("compress %s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read embedded files: %w", err)
	}
	index := c.files["index.html"]
	if index == nil {
		return nil, fmt.Errorf("read embedded files: %w: index.html", fs.ErrNotExist)
	}
	c.version = hex.EncodeToString(whole.Sum(nil))[:versionLength]
	versioned := bytes.ReplaceAll(index.body, []byte(`"`+prefix), []byte(`"`+prefix+c.version+"/"))
	if c.index, err = newFile("index.html", versioned); err != nil {
		return nil, fmt.Errorf("compress index.html: %w", err)
	}
	return c, nil
}

func newFile(name string, body []byte) (*file, error) {
	sum := sha256.Sum256(body)
	f := &file{body: body, etag: hex.EncodeToString(sum[:16]), contentType: contentType(name)}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if zipped.Len() < len(body) {
		f.zipped = zipped.Bytes()
	}
	return f, nil
}

// contentType does not ask the machine, whose tables differ: a module that is served as text/plain does not run.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".webmanifest":
		return "application/manifest+json"
	default:
		return "text/plain; charset=utf-8"
	}
}

// ServeHTTP answers with a file, or with the page that routes by itself. Paths of the API are never its own.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "The console is read with GET. Commands go to the API under /v1/.", http.StatusMethodNotAllowed)
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
		c.serveFile(w, r, name)
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case first == "v1" || path.Ext(r.URL.Path) != "" && !slices.Contains(views, first):
		http.Error(w, "Nothing is here.", http.StatusNotFound)
	default:
		send(w, r, c.index, cacheChecked)
	}
}

func (c *Console) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	cache := cacheChecked
	if version, rest, ok := strings.Cut(name, "/"); ok && isVersion(version) {
		// A page that was loaded from an older binary may still ask by its version; it gets what there is, and keeps none of it.
		if name = rest; version == c.version {
			cache = cacheForever
		}
	}
	f := c.files[name]
	if f == nil || name == "index.html" {
		http.Error(w, "No such file.", http.StatusNotFound)
		return
	}
	send(w, r, f, cache)
}

func isVersion(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == versionLength
}

func send(w http.ResponseWriter, r *http.Request, f *file, cache string) {
	h := w.Header()
	body, tag := f.body, `"`+f.etag+`"`
	h.Set("Vary", "Accept-Encoding")
	if f.zipped != nil && acceptsGzip(r) {
		body, tag = f.zipped, `"`+f.etag+`-gz"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Cache-Control", cache)
	h.Set("ETag", tag)
	if noneMatch(r, tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client that went away needs no answer
	}
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return weight == "" || err == nil && q > 0
		}
	}
	return false
}

func noneMatch(r *http.Request, tag string) bool {
	for part := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == "*" || part == tag {
			return true
		}
	}
	return false
}
