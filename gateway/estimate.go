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

// maxChoices bounds the choices of one request; no server gives more.
const maxChoices = 1024

// statedLimits returns the maximum of output tokens and the number of choices that a request
// states; zero if it states none. It reads the fields of all dialects, and the largest value
// counts.
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
