package dragoman

import "github.com/dragoman-go/dragoman/internal/jsonwire"

// MarshalJSON writes the report as stored JSON, with its version.
func (r Report) MarshalJSON() ([]byte, error) {
	return store("report", func(out *storer) {
		out.top()
		storeList(out, "losses", r.Losses, (*Loss).store)
		out.w.EndObject()
	})
}

// UnmarshalJSON reads a stored report.
func (r *Report) UnmarshalJSON(b []byte) error { return loadTop(b, "report", r, loadReport) }

func loadReport(r *jsonwire.Reader) (p Report) {
	for key := range r.Object() {
		if string(key) == "losses" {
			p.Losses = loadList(r, loadLoss)
		} else {
			r.Skip()
		}
	}
	return p
}

// MarshalJSON writes the loss, all of its members but names that were not replaced.
func (l Loss) MarshalJSON() ([]byte, error) { return store("loss", l.store) }

// UnmarshalJSON reads a stored loss.
func (l *Loss) UnmarshalJSON(b []byte) error { return load(b, "loss", l, loadLoss) }

// store writes even what is zero: "" is the whole, and who counts lines by
// severity should not have to know that info is the least.
func (l *Loss) store(out *storer) {
	severity, err := l.Severity.MarshalText()
	if err != nil {
		out.fail(err)
	}
	out.w.BeginObject()
	out.w.StringField("kind", string(l.Kind))
	out.w.StringField("severity", string(severity))
	out.w.StringField("path", l.Path)
	out.w.StringField("detail", l.Detail)
	if l.From != "" || l.To != "" {
		out.w.StringField("from", l.From)
		out.w.StringField("to", l.To)
	}
	out.w.EndObject()
}

func loadLoss(r *jsonwire.Reader) (l Loss) {
	for key := range r.Object() {
		switch string(key) {
		case "kind":
			l.Kind = loadWord[LossKind](r)
		case "severity":
			if err := l.Severity.UnmarshalText([]byte(r.String())); err != nil {
				r.Fail(err)
			}
		case "path":
			l.Path = r.String()
		case "detail":
			l.Detail = r.String()
		case "from":
			l.From = r.String()
		case "to":
			l.To = r.String()
		default:
			r.Skip()
		}
	}
	return l
}
