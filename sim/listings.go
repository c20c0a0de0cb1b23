package sim

import (
	"time"

	"github.com/dragoman-go/dragoman/internal/serving"
)

// contextLength is the context length that models report. It is not enforced.
const contextLength = 1 << 20

func modelList() []serving.Model {
	var out []serving.Model
	for _, name := range Names() {
		out = append(out, model(name))
	}
	return out
}

func find(name string) (serving.Model, error) {
	if _, err := parseName(name); err != nil {
		return serving.Model{}, err
	}
	return model(name), nil
}

func model(name string) serving.Model {
	return serving.Model{Name: name, Owner: "sim", Created: time.Unix(created, 0), Context: contextLength}
}
