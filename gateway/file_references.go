package gateway

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/targets"
)

// checkFileReferences returns an error for a reference to a stored file that the upstream cannot
// read: the model would respond without the file. Media that the model does not support becomes a
// note instead.
func (x *exchange) checkFileReferences(up *upstream) error {
	if up.client == nil {
		return nil
	}
	limits := up.client.Limits()
	target := dragoman.Origin{Dialect: limits.Dialect, Provider: up.client.Name}
	check := func(origin *dragoman.Origin, at string, p dragoman.Part) error {
		m, ok := p.(*dragoman.Media)
		if !ok || m == nil || m.Base64 != "" || m.Text != "" {
			return nil
		}
		ref := m.FileID
		if m.URL != "" {
			if ref = m.URL; !hasAnyPrefix(ref, dialects.StorageURLs()) {
				return nil
			}
		}
		if ref == "" || m.URL != "" && hasAnyPrefix(ref, limits.StorageURLs) || m.URL == "" && !limits.NoMediaFileID && sameStorage(origin, target) {
			return nil
		}
		return fmt.Errorf("%w: %s: %s refers to the stored file %q, which %s cannot read: send the content inline, or use a model of the provider that stores the file",
			dragoman.ErrUnsupported, at, m.Media, truncate(ref), x.entry.upstream)
	}
	for i := range x.req.Messages {
		m := &x.req.Messages[i]
		for j, p := range m.Parts {
			at := fmt.Sprintf("/messages/%d/parts/%d", i, j)
			if err := check(m.Origin, at, p); err != nil {
				return err
			}
			res, ok := p.(*dragoman.ToolResult)
			if !ok || res == nil {
				continue
			}
			for k, p := range res.Content {
				if err := check(m.Origin, fmt.Sprintf("%s/content/%d", at, k), p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func hasAnyPrefix(url string, with []string) bool {
	return slices.ContainsFunc(with, func(prefix string) bool {
		return len(url) >= len(prefix) && strings.EqualFold(url[:len(prefix)], prefix)
	})
}

// sameStorage reports whether file ids in a message of this origin are valid at the target: both
// are APIs of one vendor and, if both are known, of the same provider.
func sameStorage(origin *dragoman.Origin, target dragoman.Origin) bool {
	if origin == nil {
		return true
	}
	vendor := func(d dragoman.Dialect) string {
		v, _, _ := strings.Cut(string(d), ".")
		return v
	}
	return vendor(origin.Dialect) == vendor(target.Dialect) && targets.MatchProvider.Allows(origin, target)
}
