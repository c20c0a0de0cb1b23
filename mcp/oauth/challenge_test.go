package oauth

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
)

func TestReadChallenge(t *testing.T) {
	for _, tc := range []struct {
		name    string
		headers []string
		want    challenge
	}{
		{"none", nil, challenge{}},
		{"plain", []string{"Bearer"}, challenge{scheme: "bearer", schemes: []string{"bearer"}}},
		{
			"all",
			[]string{`Bearer error="insufficient_scope", scope="a b", resource_metadata="https://h/x?a=b,c"`},
			challenge{scheme: "bearer", code: "insufficient_scope", scope: []string{"a", "b"}, metadata: "https://h/x?a=b,c", schemes: []string{"bearer"}},
		},
		{
			"letter case and spaces",
			[]string{`  bEaReR   ERROR = "x" ,	Scope="s"`},
			challenge{scheme: "bearer", code: "x", scope: []string{"s"}, schemes: []string{"bearer"}},
		},
		{
			"several headers",
			[]string{"Basic realm=\"x\"", `Bearer scope="s"`},
			challenge{scheme: "bearer", scope: []string{"s"}, schemes: []string{"basic", "bearer"}},
		},
		{
			"one header",
			[]string{`Digest realm="a, Bearer scope=\"no\"", nonce=x, Bearer scope="s", DPoP algs="ES256"`},
			challenge{scheme: "bearer", scope: []string{"s"}, dpop: true, schemes: []string{"digest", "bearer", "dpop"}},
		},
		{
			"no quotation marks",
			[]string{`Bearer resource_metadata=https://h/.well-known/x, error=invalid_token`},
			challenge{scheme: "bearer", metadata: "https://h/.well-known/x", code: "invalid_token", schemes: []string{"bearer"}},
		},
		{
			"parameter of another scheme",
			[]string{`Basic scope="no", Bearer`},
			challenge{scheme: "bearer", schemes: []string{"basic", "bearer"}},
		},
		{
			"escaped quotation mark",
			[]string{`Bearer error="a\"b", scope="s"`},
			challenge{scheme: "bearer", code: `a"b`, scope: []string{"s"}, schemes: []string{"bearer"}},
		},
		{
			"malformed part",
			[]string{`Bearer "x", scope="s"`},
			challenge{scheme: "bearer", scope: []string{"s"}, schemes: []string{"bearer"}},
		},
		{
			"first value counts",
			[]string{`Bearer scope="a", scope="b"`},
			challenge{scheme: "bearer", scope: []string{"a"}, schemes: []string{"bearer"}},
		},
		{
			"bad scope characters",
			[]string{"Bearer scope=\"a \\\"b\\\" c\x7f d\""},
			challenge{scheme: "bearer", scope: []string{"a", "d"}, schemes: []string{"bearer"}},
		},
	} {
		got := readChallenge(http.Header{"Www-Authenticate": tc.headers})
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.name, got, tc.want)
		}
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer a="b", c=d, Negotiate abc==`)
	f.Add(`Bearer "`)
	f.Fuzz(func(t *testing.T, s string) {
		all := parseChallenges([]string{s, s})
		if len(all) > maxChallenges {
			t.Errorf("%d challenges", len(all))
		}
		for _, c := range readChallenge(http.Header{"Www-Authenticate": {s}}).scope {
			if !slices.Equal(splitScope(c), []string{c}) {
				t.Errorf("scope %q", c)
			}
		}
	})
}
