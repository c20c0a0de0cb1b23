package extension_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-go/dragoman/provider/extension"
)

// infoExtension is an extension without hooks.
type infoExtension extension.Info

func (p infoExtension) Info() extension.Info { return extension.Info(p) }

func needs(name string, tags ...extension.Tag) infoExtension {
	return infoExtension{Name: name, Requires: tags}
}

func set(t testing.TB, extensions ...extension.Extension) *extension.Set {
	t.Helper()
	s, err := extension.NewSet(extensions...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func resolve(t testing.TB, s *extension.Set, sw extension.Switches, tags ...extension.Tag) *extension.Resolution {
	t.Helper()
	r, err := s.Resolve(tags, sw)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func names(r *extension.Resolution) string {
	var out []string
	for _, e := range r.On {
		out = append(out, e.Info().Name)
	}
	return strings.Join(out, " ")
}

func TestX1_TagsSwitchExtensionsOnAndOff(t *testing.T) {
	never := infoExtension{Name: "optin", OptIn: true}
	chain := []extension.Extension{
		infoExtension{Name: "third", Requires: []extension.Tag{"b"}},
		infoExtension{Name: "second", Requires: []extension.Tag{"a"}, Provides: []extension.Tag{"b"}},
		infoExtension{Name: "first", Requires: []extension.Tag{"x"}, Provides: []extension.Tag{"a"}},
	}
	for name, tc := range map[string]struct {
		extensions []extension.Extension
		tags       []extension.Tag
		sw         extension.Switches
		want       string
	}{
		"no tags are needed":                               {extensions: []extension.Extension{infoExtension{Name: "feature"}}, want: "feature"},
		"all required tags":                                {extensions: []extension.Extension{needs("a", "x", "y")}, tags: []extension.Tag{"x", "y"}, want: "a"},
		"one is missing":                                   {extensions: []extension.Extension{needs("a", "x", "y")}, tags: []extension.Tag{"x"}},
		"a forbidden one":                                  {extensions: []extension.Extension{infoExtension{Name: "a", Forbids: []extension.Tag{"x"}}}, tags: []extension.Tag{"x"}},
		"tags of one switch on the next":                   {extensions: chain, tags: []extension.Tag{"x"}, want: "third second first"},
		"nothing begins the chain":                         {extensions: chain},
		"opt-in is off":                                    {extensions: []extension.Extension{never}},
		"opt-in that is named":                             {extensions: []extension.Extension{never}, sw: extension.Switches{On: []string{"optin"}}, want: "optin"},
		"on beats tags":                                    {extensions: []extension.Extension{needs("a", "x")}, sw: extension.Switches{On: []string{"a"}}, want: "a"},
		"off beats tags":                                   {extensions: []extension.Extension{needs("a", "x")}, tags: []extension.Tag{"x"}, sw: extension.Switches{Off: []string{"a"}}},
		"off beats on":                                     {extensions: []extension.Extension{needs("a", "x")}, sw: extension.Switches{On: []string{"a"}, Off: []string{"a"}}},
		"force beats all":                                  {extensions: []extension.Extension{needs("a", "x")}, sw: extension.Switches{Off: []string{"a"}, Force: []string{"a"}}, want: "a"},
		"one that forbids its own tag":                     {extensions: []extension.Extension{infoExtension{Name: "a", Provides: []extension.Tag{"x"}, Forbids: []extension.Tag{"x"}}}},
		"two that switch each other off":                   {extensions: []extension.Extension{infoExtension{Name: "a", Provides: []extension.Tag{"x"}, Forbids: []extension.Tag{"y"}}, infoExtension{Name: "b", Provides: []extension.Tag{"y"}, Forbids: []extension.Tag{"x"}}}},
		"a dispute does not touch others":                  {extensions: []extension.Extension{infoExtension{Name: "a", Provides: []extension.Tag{"x"}, Forbids: []extension.Tag{"x"}}, needs("b", "z")}, tags: []extension.Tag{"z"}, want: "b"},
		"an extension that needs a disputed tag stays off": {extensions: []extension.Extension{infoExtension{Name: "a", Provides: []extension.Tag{"x"}, Forbids: []extension.Tag{"x"}}, needs("b", "x")}},
		"forced ones settle a dispute":                     {extensions: []extension.Extension{infoExtension{Name: "a", Provides: []extension.Tag{"x"}, Forbids: []extension.Tag{"y"}}, infoExtension{Name: "b", Provides: []extension.Tag{"y"}, Forbids: []extension.Tag{"x"}}}, sw: extension.Switches{Force: []string{"b"}}, want: "b"},
		"a tag that keeps itself is not there":             {extensions: []extension.Extension{infoExtension{Name: "a", Requires: []extension.Tag{"x"}, Provides: []extension.Tag{"x"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := resolve(t, set(t, tc.extensions...), tc.sw, tc.tags...)
			if got := names(r); got != tc.want {
				t.Errorf("%q are on, want %q: %+v", got, tc.want, r.Why)
			}
			if len(r.Why) != len(tc.extensions) || slices.ContainsFunc(r.Why, func(w extension.Reason) bool { return w.Text == "" }) {
				t.Errorf("not every one has its reason: %+v", r.Why)
			}
		})
	}
}

func TestX1_UnknownAndDuplicateNamesAreErrors(t *testing.T) {
	s := set(t, infoExtension{Name: "a"})
	if _, err := s.Resolve(nil, extension.Switches{On: []string{"b"}, Force: []string{"c"}}); !errors.Is(err, extension.ErrExtensions) || !strings.Contains(err.Error(), `"b"`) || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("%v", err)
	}
	if _, err := extension.NewSet(infoExtension{Name: "a"}, infoExtension{Name: "a"}, infoExtension{}, nil); !errors.Is(err, extension.ErrExtensions) || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v", err)
	}
	if _, err := s.With(infoExtension{Name: "a"}); !errors.Is(err, extension.ErrExtensions) {
		t.Errorf("%v", err)
	}
}

// For any tags, resolution ends, does not depend on the order, and agrees with the tags.
func TestX1_ResolutionIsDeterministic(t *testing.T) {
	tag := rapid.SampledFrom([]extension.Tag{"a", "b", "c", "d", "e", "f"})
	tags := rapid.SliceOfNDistinct(tag, 0, 3, rapid.ID[extension.Tag])
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "extensions")
		var all []extension.Extension
		for i := range n {
			all = append(all, infoExtension{
				Name: fmt.Sprint("x", i), Requires: tags.Draw(t, "requires"), Forbids: tags.Draw(t, "forbids"), Provides: tags.Draw(t, "provides"),
			})
		}
		base := tags.Draw(t, "tags")
		on := func(list []extension.Extension) (string, *extension.Resolution) {
			s, err := extension.NewSet(list...)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Resolve(base, extension.Switches{})
			if err != nil {
				t.Fatal(err)
			}
			found := strings.Fields(names(r))
			slices.Sort(found)
			return strings.Join(found, " "), r
		}
		want, r := on(all)
		for _, e := range r.On {
			info := e.Info()
			if slices.ContainsFunc(info.Requires, func(t extension.Tag) bool { return !r.Has(t) }) || slices.ContainsFunc(info.Forbids, r.Has) {
				t.Fatalf("%s is on, and its tags are not there: %v", info.Name, r.Tags)
			}
		}
		if got, _ := on(rapid.Permutation(all).Draw(t, "another order")); got != want {
			t.Fatalf("%q are on in another order, not %q", got, want)
		}
	})
}

func TestX1_DependentOfAResolvedConflictIsOn(t *testing.T) {
	s := set(t,
		infoExtension{Name: "unstable", Forbids: []extension.Tag{"a"}, Provides: []extension.Tag{"a"}},
		infoExtension{Name: "follower", Forbids: []extension.Tag{"a"}, Provides: []extension.Tag{"f"}},
		needs("last", "f"),
		needs("needs", "a"),
	)
	r, err := s.Resolve(nil, extension.Switches{})
	if err != nil {
		t.Fatal(err)
	}
	var on []string
	for _, w := range r.Why {
		if w.On {
			on = append(on, w.Name)
		}
	}
	if want := []string{"follower", "last"}; !slices.Equal(on, want) {
		t.Errorf("on %v, want %v: %+v", on, want, r.Why)
	}
}

type wrongHook struct{ infoExtension }

func (wrongHook) Prepare(*extension.Exchange) error { return nil }

type pointerHook struct{ infoExtension }

func (*pointerHook) Decorate(context.Context, *extension.Exchange) error { return nil }

func TestHooksWithOtherSignaturesAreRefused(t *testing.T) {
	for want, e := range map[string]extension.Extension{
		"method Prepare of extension_test.wrongHook is a func(*extension.Exchange) error, want a func(context.Context, *extension.Exchange) error": wrongHook{infoExtension{Name: "a"}},
		"method Decorate is only on the pointer: register a pointer to extension_test.pointerHook":                                                 pointerHook{infoExtension{Name: "a"}},
	} {
		_, err := extension.NewSet(e)
		if !errors.Is(err, extension.ErrExtensions) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%T: %v, want %s", e, err, want)
		}
	}
	if _, err := extension.NewSet(&pointerHook{infoExtension{Name: "a"}}, infoExtension{Name: "b"}); err != nil {
		t.Error(err)
	}
}
