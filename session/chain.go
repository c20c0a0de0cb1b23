package session

import (
	"context"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/targets"
)

// ActionModel returns the model whose extensions act on the session. For a
// [provider.Chain], it returns the link that gave the last response of the conversation,
// found by the origin of the messages, or the first link with a wire if no link has
// responded yet. A name that is not empty chooses a link of the chain. For any other model,
// ActionModel returns the model itself, and the name is as in [Action].
func (s *Session) ActionModel(ctx context.Context, model dragoman.Model, name string) (dragoman.Model, error) {
	on, err := s.connection(ctx, model, name, nil)
	if err != nil {
		return nil, wrapErr("choosing the model that acts on", s.ID(), err)
	}
	return on.model, nil
}

// connection returns the session's wire to a model, or to the link of a chain that
// [Session.ActionModel] describes. Added messages are part of the conversation.
func (s *Session) connection(ctx context.Context, model dragoman.Model, name string, added []dragoman.Message) (connection, error) {
	all, err := connectionsTo(ctx, model, name)
	if err != nil {
		return connection{}, err
	}
	return s.lastOf(ctx, all, added)
}

// connectionsTo returns the wire of a model, or the wires of all links of a chain that have
// one. A name selects one link. Links whose wire cannot be made are omitted unless there is
// no other; they fail when they are called.
func connectionsTo(ctx context.Context, model dragoman.Model, name string) ([]connection, error) {
	if _, ok := model.(*provider.Chain); !ok {
		on, err := connectionTo(ctx, model, name)
		return []connection{on}, err
	}
	links := linksOf(model)
	for _, link := range links {
		if name != "" && link.Name == name {
			on, err := connectionTo(ctx, link.Model, "")
			return []connection{on}, err
		}
	}
	var all []connection
	var errs []error
	for _, link := range links {
		on, err := connectionTo(ctx, link.Model, name)
		switch {
		case err == nil:
			all = append(all, on)
		case !errors.Is(err, ErrNoWire):
			errs = append(errs, fmt.Errorf("%s: %w", link.Name, err))
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case len(errs) > 0:
		return nil, errors.Join(errs...)
	default:
		return nil, fmt.Errorf("%w: no model of the chain does; use models that were opened by package provider", ErrNoWire)
	}
}

// linksOf returns the links of a chain, including those of nested chains.
func linksOf(model dragoman.Model) (links []provider.Link) {
	for _, link := range model.(*provider.Chain).Links {
		if _, nested := link.Model.(*provider.Chain); nested {
			links = append(links, linksOf(link.Model)...)
		} else {
			links = append(links, link)
		}
	}
	return links
}

// lastOf returns the connection that gave the last response of the conversation with added
// messages, or the first if none did.
func (s *Session) lastOf(ctx context.Context, all []connection, added []dragoman.Message) (connection, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	if on, found := lastResponder(all, added); found {
		return on, nil
	}
	v, err := s.view()
	if err != nil {
		return connection{}, err
	}
	messages, err := v.messages(ctx)
	if err != nil {
		return connection{}, err
	}
	if on, found := lastResponder(all, messages); found {
		return on, nil
	}
	return all[0], nil
}

// lastResponder returns the connection whose model sent the last message that came from any
// of them. It prefers a link with the same scope, but accepts another scope, because the
// scope changes with the credential.
func lastResponder(all []connection, messages []dragoman.Message) (connection, bool) {
	for i := len(messages) - 1; i >= 0; i-- {
		o := messages[i].Origin
		if o == nil || messages[i].Role != dragoman.RoleAssistant {
			continue
		}
		for _, match := range []targets.Match{
			targets.MatchDialect | targets.MatchProvider | targets.MatchModel | targets.MatchScope,
			targets.MatchDialect | targets.MatchProvider | targets.MatchModel,
		} {
			for _, on := range all {
				if match.Allows(o, on.origin()) {
					return on, true
				}
			}
		}
	}
	return connection{}, false
}
