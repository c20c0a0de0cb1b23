package schema

import (
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// clock limits the total time for the patterns of one validation.
type clock struct {
	spent time.Duration
	// over reports that a match was cut off, so that its result is not reliable.
	over bool
}

// pattern is an ECMA regular expression with a time limit.
type pattern struct {
	re    *regexp2.Regexp
	clock *clock
}

func (p *pattern) String() string { return p.re.String() }

func (p *pattern) MatchString(s string) bool {
	if p.clock.over {
		return false
	}
	start := time.Now()
	ok, err := p.re.MatchString(s)
	p.clock.spent += time.Since(start)
	if err != nil || p.clock.spent > regexpBudget {
		p.clock.over = true
		return false
	}
	return ok
}

// engine compiles patterns that share one clock. Authors use three flavors of ECMA expressions:
// plain, with Unicode classes, and with inline flags.
func engine(c *clock) jsonschema.RegexpEngine {
	return func(s string) (jsonschema.Regexp, error) {
		var first error
		for _, opt := range [...]regexp2.RegexOptions{regexp2.ECMAScript, regexp2.ECMAScript | regexp2.Unicode, regexp2.None} {
			re, err := regexp2.Compile(s, opt)
			if err == nil {
				re.MatchTimeout = matchTimeout
				return &pattern{re, c}, nil
			}
			if first == nil {
				first = err
			}
		}
		return nil, first
	}
}
