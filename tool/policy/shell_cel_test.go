package policy

import (
	"context"
	"testing"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/tool"
)

// No command bypasses an expression that allows a list of programs, or one that denies a list.
func TestP1_ShellRulesCannotBeBypassed(t *testing.T) {
	allow := mustNew(t, Config{Default: defaultDeny, Rules: []Rule{{ID: "allow", Effect: tool.Allow, When: When{
		Expression: `cel.bind(c, shell(args.command), c.redirects.size() == 0 && c.programs.all(p, p in ["ls", "cat", "grep"]))`,
	}}}})
	deny := mustNew(t, Config{Rules: []Rule{{ID: "deny", Effect: tool.Deny, When: When{
		Expression: `shell(args.command).programs.exists(p, p in ["rm", "?"])`,
	}}}})
	decide := func(p *Policy, command string) tool.Effect {
		d, err := p.Decide(context.Background(), about("shell", `{"command":`+string(configfile.Quote(command))+`}`))
		if err != nil {
			t.Fatal(err)
		}
		return d.Effect
	}
	for _, ok := range []string{`ls`, `cat a | grep b`, `ls $HOME`} {
		if decide(allow, ok) != tool.Allow || decide(deny, ok) != tool.Allow {
			t.Errorf("%s is refused", ok)
		}
	}
	for _, bad := range []string{
		`rm -rf /`, `ls; rm a`, `ls $(rm a)`, `/bin/rm a`, `env rm a`, `r''m a`, `$x`, `PATH=/tmp ls`, `ls() { rm a; }; ls`, `eval ls`,
		`bash -c 'rm a'`, `ls "`, `xargs rm < a`, `alias ls=rm`,
		`[[ a || rm ]]`, `cat <(rm a)`, `ls |& rm`, "ls `ls <<E`\nrm a\nE", `ls $(ls |& cat)`,
	} {
		if decide(allow, bad) == tool.Allow {
			t.Errorf("%s is allowed", bad)
		}
		if decide(deny, bad) == tool.Allow {
			t.Errorf("%s is not denied", bad)
		}
	}
	for _, other := range []string{`./ls`, `/tmp/ls`, `LS`, `ls > a`, `[[ a > b ]]`, `ls &> a`} { // none of them is a listed program
		if decide(allow, other) == tool.Allow {
			t.Errorf("%s is allowed", other)
		}
	}
}
