package gateway

import (
	"math"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving"
)

// estimate returns the number of tokens that a request reserves of its key's budget: its
// prompt, with the conversation that the gateway has stored, plus the maximum of output
// tokens. It is zero if the key has no budget.
func (x *exchange) estimate(key *access.Key) int64 {
	if key.Budget.Tokens == 0 {
		return 0
	}
	most, choices := statedLimits(x.body)
	if set := x.route.Set.MaxTokens; set != nil {
		most = *set
	}
	if most <= 0 {
		most = orElse(key.Budget.Reserve, access.DefaultReserve)
	}
	prompt := int64(max(len(x.body), len(x.bodies.translated))) / bytesPerToken
	if len(x.history) > 0 {
		prompt += serving.CountTokens(&dragoman.Request{Messages: x.history})
	}
	choices = min(max(choices, 1), maxChoices)
	if most > (math.MaxInt64-prompt)/choices {
		return math.MaxInt64
	}
	return prompt + most*choices
}

// maxChoices bounds the answers to one request; no server gives more.
const maxChoices = 1024

// statedLimits holds the maximum of output tokens that a request states, and the number of
// responses that it asks for; zero if it does not. The names of all dialects are read: for
// a request with several, the largest value is reserved.
func statedLimits(body []byte) (most, choices int64) {
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' {
		return 0, 0
	}
	readStatedLimits(r, &most, &choices)
	return most, choices
}

// readStatedLimits reads one object, and the objects of settings in it.
func readStatedLimits(r *jsonwire.Reader, most, choices *int64) {
	number := func(to *int64) {
		if n, ok := r.Count(); ok {
			*to = max(*to, n)
		}
	}
	for key := range r.Object() {
		switch strings.ToLower(strings.ReplaceAll(string(key), "_", "")) {
		case "maxtokens", "maxcompletiontokens", "maxoutputtokens", "numpredict", "maxnewtokens":
			number(most)
		case "n", "candidatecount":
			number(choices)
		case "generationconfig", "options", "inferenceconfig":
			if r.Kind() == '{' {
				readStatedLimits(r, most, choices)
			} else {
				r.Skip()
			}
		default:
			r.Skip()
		}
	}
}
