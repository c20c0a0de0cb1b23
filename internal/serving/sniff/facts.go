package sniff

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// sign is a sign with the dialects that have it, the most likely first.
type sign struct {
	dialects []dragoman.Dialect
	wire.Sign
}

// allSigns are the signs of all dialects, each list in the order of the ranks.
type allSigns struct {
	response, stream, tool []sign
	request                [4][]sign
	messages               [3][]sign
	// likeliest is the order in which dialects are offered if several fit.
	likeliest []dragoman.Dialect
}

var signs = sync.OnceValue(func() (all allSigns) {
	codecs := dialects.All()
	slices.SortFunc(codecs, func(a, b dialect.Codec) int { return cmp.Compare(wire.Of(a).Signs.Rank, wire.Of(b).Signs.Rank) })
	for _, codec := range codecs {
		all.likeliest = append(all.likeliest, codec.Dialect())
	}
	merge := func(of func(*wire.Signs) []wire.Sign) (out []sign) {
		for _, codec := range codecs {
			for _, s := range of(&wire.Of(codec).Signs) {
				i := slices.IndexFunc(out, func(o sign) bool { return o.Rank == s.Rank && o.Because == s.Because })
				if i < 0 {
					i, out = len(out), append(out, sign{Sign: s})
				}
				out[i].dialects = append(out[i].dialects, codec.Dialect())
			}
		}
		return out
	}
	inOrder := func(list []sign) []sign {
		slices.SortStableFunc(list, func(a, b sign) int { return cmp.Compare(a.Rank, b.Rank) })
		return list
	}
	all.response = inOrder(merge(func(s *wire.Signs) []wire.Sign { return s.Response }))
	all.stream = inOrder(merge(func(s *wire.Signs) []wire.Sign { return s.Stream }))
	all.tool = inOrder(append(merge(func(s *wire.Signs) []wire.Sign { return s.Tool }), mcpSigns...))
	for i := range all.request {
		all.request[i] = inOrder(merge(func(s *wire.Signs) []wire.Sign { return s.Request[i] }))
	}
	for i := range all.messages {
		all.messages[i] = inOrder(merge(func(s *wire.Signs) []wire.Sign { return s.Messages[i] }))
	}
	return all
})

// fact is a sign that was looked for.
type fact struct {
	fits    []dragoman.Dialect
	because string
	seen    bool
}

// evidence holds the facts, in groups of decreasing weight. A later group counts only
// where it agrees with the earlier ones.
type evidence struct {
	groups [][]fact
	model  string
}

// narrow makes a guess from evidence. Facts of one group that exclude each other are an
// *AmbiguousError; no fact in the first group is ErrUnknown.
func narrow(e evidence, kind Kind, dialect dragoman.Dialect) (Guess, error) {
	left := signs().likeliest
	because, contradicting := "", ""
	for i, group := range e.groups {
		facts := slices.DeleteFunc(slices.Clone(group), func(f fact) bool { return !f.seen || len(intersect(left, f.fits)) == 0 })
		if i == 0 && len(facts) == 0 {
			return Guess{}, ErrUnknown
		}
		next := left
		for _, f := range facts {
			if dialect != "" && slices.Contains(left, dialect) && !slices.Contains(f.fits, dialect) {
				contradicting = cmp.Or(contradicting, f.because)
				continue // the caller specified the dialect; a fact for another one is a mistake in the document
			}
			narrower := intersect(next, f.fits)
			if len(narrower) == 0 {
				return Guess{}, contradiction(left, facts, kind)
			}
			if len(narrower) < len(next) || because == "" {
				because = f.because
			}
			next = narrower
		}
		left = next
	}
	if dialect != "" {
		if !slices.Contains(left, dialect) {
			return Guess{}, ErrUnknown
		}
		if because == "" { // every fact indicates another dialect
			because = specified + ", although " + contradicting
		}
		return Guess{Dialect: dialect, Kind: kind, Because: because}, nil
	}
	left = byModel(left, e.model)
	return Guess{Dialect: left[0], Kind: kind, Because: because, Or: left[1:]}, nil
}

// contradiction returns an error with the dialects that the facts indicate, and the
// first fact for each.
func contradiction(left []dragoman.Dialect, facts []fact, kind Kind) error {
	e := &AmbiguousError{Kind: kind}
	for _, f := range facts {
		fits := intersect(left, f.fits)
		if len(intersect(e.Fits, fits)) > 0 {
			continue
		}
		e.Fits = append(e.Fits, fits...)
		e.Because = append(e.Because, f.because)
	}
	return e
}

// intersect returns the common elements of two lists, in the order of the first.
func intersect(a, b []dragoman.Dialect) []dragoman.Dialect {
	var out []dragoman.Dialect
	for _, d := range a {
		if slices.Contains(b, d) {
			out = append(out, d)
		}
	}
	return out
}

// byModel puts the dialect of a model's vendor first, if several fit.
func byModel(fits []dragoman.Dialect, model string) []dragoman.Dialect {
	for i, d := range fits {
		if is := dialects.WireOf(d).Signs.Model; is != nil && is(model) {
			return slices.Concat([]dragoman.Dialect{d}, fits[:i], fits[i+1:])
		}
	}
	return fits
}

// evidenceOf looks for signs in an object.
func evidenceOf(m wire.Object, groups [][]sign) (e evidence) {
	for _, group := range groups {
		facts := make([]fact, len(group))
		for i, s := range group {
			facts[i] = fact{s.dialects, s.Because, s.Holds(m)}
		}
		e.groups = append(e.groups, facts)
	}
	return e
}

// requestOf returns the evidence in a request: where its conversation is, the shape of
// the conversation and the tools, and its settings.
func requestOf(m wire.Object) evidence {
	all := signs().request
	e := evidenceOf(m, all[:])
	_ = json.Unmarshal(m["model"], &e.model) // any other type is not a name
	return e
}

// messagesOf returns the evidence in messages without a request.
func messagesOf(ms []wire.Object) evidence {
	list, _ := json.Marshal(ms) // its values were read as JSON
	all := signs().messages
	return evidenceOf(wire.Object{"messages": list}, all[:])
}
