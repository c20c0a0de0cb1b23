package strictupstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// watcher stores what a response issues before the client sees it, and signs the calls of
// Gemini models that sign theirs.
type watcher struct {
	http.ResponseWriter
	server *Server
	// stored: the items of the response are stored.
	stored bool
	// signsCalls: function calls get a thoughtSignature.
	signsCalls bool
	json       bool
	// theirs is the quoted model name of the next handler, and name the one that the client
	// gets in its place. Both are empty if the name was not replaced.
	theirs, name []byte
	// line buffers the bytes after the last line end, or the whole of a JSON response.
	line []byte
}

func (s *Server) watch(w http.ResponseWriter, c call, body []byte) *watcher {
	g := geminiModelOf(c.model)
	out := &watcher{
		ResponseWriter: w, server: s,
		stored:     c.dialect == dialectname.OpenAIResponses && isStored(body),
		signsCalls: c.dialect == dialectname.Gemini && g != nil && g.version >= 30 && !c.array,
	}
	if theirs := c.replaced(s.o); theirs != c.model && vendorOf(c.dialect).namesModel() {
		out.theirs, out.name = quoted(theirs), quoted(c.model)
	}
	return out
}

// quoted returns a text as a JSON string.
func quoted(s string) []byte {
	raw, _ := json.Marshal(s) // a string can always be written
	return raw
}

// byLine reports whether the response is written line by line, or whole if it is JSON.
func (w *watcher) byLine() bool { return w.signsCalls || w.stored || w.theirs != nil }

// Unwrap is for [http.ResponseController].
func (w *watcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w *watcher) WriteHeader(status int) {
	w.json = strings.HasPrefix(w.Header().Get("Content-Type"), "application/json")
	if w.signsCalls || w.theirs != nil {
		w.Header().Del("Content-Length")
	}
	if status != http.StatusOK {
		w.stored, w.signsCalls = false, false
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *watcher) Write(p []byte) (int, error) {
	if !w.byLine() {
		w.line = append(w.line, p...)
		w.server.issue(w.line)
		w.line = w.line[max(0, len(w.line)-maxSplit):]
		return w.ResponseWriter.Write(p)
	}
	w.line = append(w.line, p...)
	if w.json {
		return len(p), nil // wait for the whole body
	}
	n := bytes.LastIndexByte(w.line, '\n') + 1
	for line := range bytes.Lines(w.line[:n]) {
		if err := w.send(line); err != nil {
			return 0, err
		}
	}
	w.line = append([]byte(nil), w.line[n:]...)
	return len(p), nil
}

// maxSplit bounds how long an opaque value can be that two writes share.
const maxSplit = 4 << 10

// send stores what a line has, and writes it.
func (w *watcher) send(line []byte) error {
	prefix, data := []byte("data: "), line
	isData := bytes.HasPrefix(line, prefix)
	if isData {
		data = line[len(prefix):]
	}
	if w.signsCalls && (isData || w.json) {
		data = w.signCalls(data)
		if isData {
			line = append(append([]byte(nil), prefix...), data...)
		} else {
			line = data
		}
	}
	for _, field := range []string{`"model":`, `"modelVersion":`} {
		if w.theirs != nil {
			line = bytes.ReplaceAll(line, append([]byte(field), w.theirs...), append([]byte(field), w.name...))
		}
	}
	w.server.issue(line)
	switch {
	case w.stored && w.json:
		w.server.store(line)
	case w.stored && isData:
		w.server.storeEvent(data)
	}
	_, err := w.ResponseWriter.Write(line)
	return err
}

// end writes what is left, also of a response that was cut.
func (w *watcher) end() {
	if w.byLine() && len(w.line) > 0 {
		_ = w.send(w.line) // the client may have gone
	}
}

// signCalls adds a signature to the first function call of a response, or of a chunk of a
// stream: the vendor's SDK treats the calls of each chunk as a separate step.
func (w *watcher) signCalls(data []byte) []byte {
	if !bytes.Contains(data, []byte(`"functionCall"`)) {
		return data
	}
	root, err := object(data)
	if err != nil {
		return data
	}
	for _, c := range objects(root, "candidates") {
		for _, p := range objects(obj(c, "content"), "parts") {
			if !set(p, "functionCall") {
				continue
			}
			if str(p, "thoughtSignature") != "" {
				return data
			}
			call, _ := json.Marshal(p["functionCall"])
			sum := sha256.Sum256(call)
			p["thoughtSignature"] = base64.StdEncoding.EncodeToString(sum[:])
			out, err := json.Marshal(root)
			if err != nil {
				return data
			}
			if bytes.HasSuffix(data, []byte("\n")) {
				out = append(out, '\n')
			}
			return out
		}
	}
	return data
}
