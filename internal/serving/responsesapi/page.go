package responsesapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
)

// The limits of a page of items.
const (
	defaultPage = 20
	maxPage     = 100
)

// List is a page of items.
type List struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	First   *string           `json:"first_id"`
	Last    *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

// Page returns the elements that the parameters limit, order and after of a query select, and
// the list object to write. The items must be in ascending order; a page is in descending
// order by default.
func Page[T any](query url.Values, items []T, raw func(T) json.RawMessage) ([]T, *List, error) {
	limit := defaultPage
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return nil, nil, badQuery("limit", fmt.Sprintf("limit: %.40q is not a number from 1 to %d", text, maxPage))
		}
		limit = n
	}
	switch order := query.Get("order"); order {
	case "asc":
	case "", "desc":
		items = slices.Clone(items)
		slices.Reverse(items)
	default:
		return nil, nil, badQuery("order", fmt.Sprintf("order: %.40q is neither asc nor desc", order))
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(item T) bool { return IDOf(raw(item)) == after })
		if i < 0 {
			return nil, nil, badQuery("after", fmt.Sprintf("after: item '%s' is not in this list", bounded(after)))
		}
		items = items[i+1:]
	}
	list := &List{Object: "list", Data: []json.RawMessage{}, HasMore: len(items) > limit}
	items = items[:min(limit, len(items))]
	for _, item := range items {
		list.Data = append(list.Data, raw(item))
	}
	if n := len(list.Data); n > 0 {
		first, last := IDOf(list.Data[0]), IDOf(list.Data[n-1])
		list.First, list.Last = &first, &last
	}
	return items, list, nil
}

func badQuery(param, message string) error {
	return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: param, Message: message}
}
