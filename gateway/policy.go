package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// policyHost describes the gateway to policies: it decides on model calls, has no
// agents, and has no human to ask.
func policyHost() policy.Host {
	return policy.Host{
		Name: "the gateway", Subjects: []string{codes.SubjectModelCall}, Agents: []string{}, Unattended: true,
	}
}

// bindPolicy returns a policy for the gateway; nil stays nil. The error is a
// [*ConfigError].
func bindPolicy(p *policy.Policy, setting string) (*policy.Policy, error) {
	if p == nil {
		return nil, nil
	}
	out, err := p.For(policyHost())
	if err != nil {
		return nil, &ConfigError{Setting: setting, Reason: err.Error()}
	}
	return out, nil
}

// policies are the policies of a config that is in use.
type policies struct {
	all     *policy.Policy
	byKey   map[string]*policy.Policy
	byRoute map[string]*policy.Policy // by route pattern
}

// newPolicies prepares the policies of a config.
func newPolicies(c *Config) (p policies, err error) {
	if p.all, err = bindPolicy(c.Policy, "policy"); err != nil {
		return p, err
	}
	p.byKey, p.byRoute = map[string]*policy.Policy{}, map[string]*policy.Policy{}
	for _, name := range slices.Sorted(maps.Keys(c.KeyPolicies)) {
		if !slices.ContainsFunc(c.Keys, func(k access.Key) bool { return k.Name == name }) {
			return p, &ConfigError{Setting: "keys." + name + ".policy", Reason: "unknown key"}
		}
		if p.byKey[name], err = bindPolicy(c.KeyPolicies[name], "keys."+name+".policy"); err != nil {
			return p, err
		}
	}
	for _, r := range c.Routes {
		if p.byRoute[r.Pattern], err = bindPolicy(r.Policy, "routes."+r.Pattern+".policy"); err != nil {
			return p, err
		}
	}
	return p, nil
}

// forRequest returns the policies for the requests of a key on a route. Each must allow a
// request.
func (p *policies) forRequest(key, route string) []*policy.Policy {
	var out []*policy.Policy
	for _, one := range []*policy.Policy{p.all, p.byKey[key], p.byRoute[route]} {
		if one != nil {
			out = append(out, one)
		}
	}
	return out
}

// decision is the decision of a policy on one model of a route.
type decision struct {
	upstream string
	tool.Decision
}

func (d *decision) String() string {
	by := "default"
	if d.Rule != "" {
		by = d.Rule
	}
	return fmt.Sprintf("%s: %s by %s", d.upstream, d.Effect, by)
}

// withPolicyGate returns a context in which the policies decide on each model before it is
// called.
func (x *exchange) withPolicyGate(ctx context.Context) context.Context {
	list := x.setup.policies.forRequest(x.entry.key, x.entry.route)
	if len(list) == 0 {
		return ctx
	}
	metadata := map[string]string{
		"key": x.entry.key, "route": x.entry.route, "requested": x.head.model, "dialect": string(x.codec.Dialect()),
	}
	var runs, silent []*tool.Run
	for _, p := range list {
		run := (&tool.Runner{Policy: p, Observe: x.observe, Log: x.opts.Log, Now: x.opts.Now}).Start(x.id)
		other := (&tool.Runner{Policy: p, Now: x.opts.Now}).Start(x.id)
		run.Metadata, other.Metadata = metadata, metadata
		runs, silent = append(runs, run), append(silent, other)
	}
	return modelcall.WithModelGate(ctx, func(ctx context.Context, model string) error {
		for i, run := range runs {
			if err := run.DecideModel(ctx, 0, model); err != nil {
				return err
			}
			for _, name := range x.equivalentNames(model) {
				var d *tool.DeniedError
				if errors.As(silent[i].DecideModel(ctx, 0, name), &d) && d.Decision.Rule != "" {
					return run.DecideModel(ctx, 0, name)
				}
			}
		}
		return nil
	})
}

// equivalentNames returns the names that the upstream treats as the same model. A rule that denies
// one of them denies the model; the default does not.
func (x *exchange) equivalentNames(model string) (names []string) {
	provider, name, _ := strings.Cut(model, "/")
	up := x.route.upstreams[model]
	if up == nil || up.client == nil {
		return nil
	}
	sameModel := dialects.WireOf(up.dialect).Endpoint.SameModel
	if sameModel == nil {
		return nil
	}
	for _, other := range sameModel(name) {
		names = append(names, provider+"/"+other)
	}
	return names
}

// observe counts, logs and reports a decision.
func (x *exchange) observe(ev tool.Event) {
	d, ok := ev.(tool.PolicyDecided)
	if !ok {
		return
	}
	x.entry.decisions = append(x.entry.decisions, decision{d.Model, d.Decision})
	if x.opts.OnDecision != nil {
		x.opts.OnDecision(d)
	}
}

// deniedError is the error for the client of a request that a policy denied. It names
// neither the upstream nor the file.
func (x *exchange) deniedError(d *tool.DeniedError) *dragoman.APIError {
	message := fmt.Sprintf("the gateway's policy denies the model %.200q", x.head.model)
	if d.Decision.Rule != "" {
		message += fmt.Sprintf(" by rule %q", d.Decision.Rule)
	}
	if d.Decision.Reason != "" {
		message += ": " + d.Decision.Reason
	}
	return &dragoman.APIError{Class: dragoman.ErrorPermission, Status: http.StatusForbidden, Param: "model", Message: message, Err: d}
}

// denialOf returns the denial because of which no model was called, or nil. The failure of
// a model that was called takes precedence.
func denialOf(err error) *tool.DeniedError {
	var d *tool.DeniedError
	if errors.As(lastAttemptError(err), &d) {
		return d
	}
	return nil
}

// policy reads the file of a policy.
func (r *reader) policy(n *node) *policy.Policy {
	file := r.String(n, "policy")
	if n.Kind != configfile.String {
		return nil
	}
	if strings.TrimSpace(file) == "" {
		r.Bad(n, "policy: the file name is missing")
		return nil
	}
	p, err := policy.Load(file)
	if err == nil {
		_, err = p.For(policyHost())
	}
	if err != nil {
		r.Bad(n, "policy: %s", strings.TrimPrefix(err.Error(), "policy: "))
		return nil
	}
	return p
}

// policyFiles returns the files of policies that a config names, and those of MCP servers.
func policyFiles(data []byte) (files []string) {
	if !bytes.Contains(data, []byte("policy")) && !bytes.Contains(data, []byte("mcp")) {
		return nil
	}
	root, _ := configfile.Read(data)
	each := func(n *node, f func(name string, value *node)) {
		if n != nil && n.Kind == configfile.Map {
			for i, key := range n.Keys {
				f(key.Text, n.Items[i])
			}
		}
	}
	take := func(name string, value *node) {
		if (name == "policy" || name == "mcp_policy") && value.Kind == configfile.String {
			files = append(files, value.Text)
		}
	}
	each(root, func(name string, value *node) {
		if name != "gateway" {
			return
		}
		each(value, func(name string, value *node) {
			take(name, value)
			if name == "mcp" {
				each(value, func(name string, value *node) {
					if name == "policy" || name == "lock" || name == "file" {
						take("policy", value)
					}
				})
			}
			if name == "keys" || name == "routes" {
				each(value, func(_ string, one *node) { each(one, take) })
			}
		})
	})
	return files
}

// hashWithPolicies returns the hash of a config and of the policies that it names, so that
// a change to a policy counts as a change to the config.
func hashWithPolicies(data []byte) [sha256.Size]byte {
	files := policyFiles(data)
	if len(files) == 0 {
		return sha256.Sum256(data)
	}
	h := sha256.New()
	sum := sha256.Sum256(data)
	h.Write(sum[:])
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			text = []byte(err.Error())
		}
		sum := sha256.Sum256(text)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
