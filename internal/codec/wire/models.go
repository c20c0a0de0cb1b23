package wire

import "time"

// Model is a model as servers list it.
type Model struct {
	Name string
	// Owner is the organization that serves it.
	Owner string
	// Created and Context, the number of tokens that the model accepts, may be zero:
	// unknown.
	Created time.Time
	Context int64
	// NoTools, NoThinking and NoVision mean that the model is known not to call tools,
	// to reason, or to accept images.
	NoTools, NoThinking, NoVision bool
}

// Date returns the creation time as RFC 3339, or the epoch if it is unknown.
func (m Model) Date() string {
	if m.Created.IsZero() {
		m.Created = time.Unix(0, 0)
	}
	return m.Created.UTC().Format(time.RFC3339)
}

// Models writes lists of models as the vendor does.
type Models struct {
	// Path is the path of the list.
	Path string
	// One means that Path followed by the name of a model returns that model.
	One bool
	// List returns the JSON value of a list, and Show that of one model.
	List func([]Model) any
	Show func(Model) any
	// Running is the path of the list of loaded models, which is always empty.
	Running string
	// ShowPath is the path for requests with the name of a model in a POST body.
	// Details returns the response.
	ShowPath string
	Details  func(Model) any
	// VersionPath is the path of the request that returns Version.
	VersionPath string
	Version     any
}

// Each converts models into a list that is never null.
func Each[T any](all []Model, convert func(Model) T) []T {
	out := make([]T, len(all))
	for i := range all {
		out[i] = convert(all[i])
	}
	return out
}
