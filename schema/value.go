package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// decode reads JSON into plain Go values (map[string]any, []any, string, json.Number, bool,
// nil). It rejects ambiguous JSON and, with exact, numbers that would be costly to compare.
func decode(text []byte, maxDepth int, exact bool) (any, error) {
	d := decoder{r: jsonwire.NewReader(text), max: maxDepth, exact: exact}
	return d.all(text)
}

type decoder struct {
	r      *jsonwire.Reader
	max    int
	exact  bool
	values int
}

// all reads the whole text.
func (d *decoder) all(text []byte) (any, error) {
	if err := jsonwire.Check(text); err != nil {
		return nil, err
	}
	v := d.value(0)
	if err := d.r.End(); err != nil {
		return nil, err
	}
	return v, nil
}

var errNumber = errors.New("a number with too many digits")

func (d *decoder) value(depth int) any {
	d.values++
	r := d.r
	if depth > d.max {
		r.Fail(fmt.Errorf("%w: nested deeper than %d", dragoman.ErrTooLarge, d.max))
		return nil
	}
	switch r.Kind() {
	case '{':
		m := map[string]any{}
		for key := range r.Object() {
			k := string(key)
			m[k] = d.value(depth + 1)
		}
		return m
	case '[':
		a := []any{}
		for range r.Array() {
			a = append(a, d.value(depth+1))
		}
		return a
	case '"':
		return r.String()
	case '0':
		raw := r.Raw()
		if d.exact && !isSmallNumber(raw) {
			r.Fail(fmt.Errorf("%w: %w", dragoman.ErrTooLarge, errNumber))
		}
		return json.Number(raw)
	case 't', 'f':
		return r.Bool()
	default:
		r.Skip()
		return nil
	}
}

// isSmallNumber reports whether the exact value of a number needs little memory.
func isSmallNumber(raw []byte) bool {
	if len(raw) > maxNumberText {
		return false
	}
	i := strings.IndexAny(string(raw), "eE")
	if i < 0 {
		return true
	}
	exp, err := strconv.Atoi(strings.TrimPrefix(string(raw[i+1:]), "+"))
	return err == nil && exp <= maxExponent && exp >= -maxExponent
}
