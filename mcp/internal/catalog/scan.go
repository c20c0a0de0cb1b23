package catalog

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// The rules of the scanner.
const (
	ruleHidden     = "hidden_character"
	ruleInjection  = "injection_phrase"
	ruleMarkup     = "prompt_markup"
	ruleSecrecy    = "hidden_from_user"
	ruleTransfer   = "data_transfer"
	ruleEncoded    = "encoded_command"
	ruleDirective  = "directive"
	ruleContext    = "context_parameter"
	ruleCapability = "capability_mismatch"
	ruleSecret     = "embedded_secret"
	ruleNearName   = "near_name"
	ruleLookalike  = "lookalike_name"
	ruleMention    = "names_other_server"
	ruleUnscanned  = "unscanned_text"
)

const (
	// maxFindings bounds the findings of one tool, and perRule those of one rule in a text.
	maxFindings = 50
	perRule     = 3
	// excerptBytes is the text around a finding.
	excerptBytes = 40
)

// ScanText scans a text of a server that is not part of a tool, such as a prompt or its
// instructions. field names the text in the findings.
func ScanText(server, field, text string) []Finding {
	budget := scanBudget
	s := scanner{server: server, budget: &budget}
	s.text(field, text)
	return s.sorted()
}

type scanner struct {
	server, tool string
	found        []Finding
	// budget is the text that rules may still read, in bytes for each rule; nil means no
	// limit. All tools of a server share it.
	budget *int
}

// scanBudget bounds the work of scanning one server. Catalogs of a thousand tools need a
// fraction of it.
const scanBudget = 4 << 20

// spend reports whether rules may read n more bytes. If not, it holds the tool.
func (s *scanner) spend(n int, field, text string) bool {
	if s.budget == nil {
		return true
	}
	if *s.budget -= n; *s.budget >= 0 {
		return true
	}
	if !slices.ContainsFunc(s.found, func(f Finding) bool { return f.Rule == ruleUnscanned }) {
		s.add(ruleUnscanned, Block, field, text, 0, 0, "the server has so much suspicious text that not all of it was scanned")
	}
	return false
}

func (s *scanner) add(rule, severity, field, text string, start, end int, reason string) {
	if len(s.found) >= maxFindings {
		return
	}
	s.found = append(s.found, Finding{
		Server: s.server, Tool: s.tool, Rule: rule, Severity: severity, Field: field, Offset: start,
		Excerpt: excerpt(text, start, end), Reason: reason,
	})
}

// excerpt returns the text around a range, escaped.
func excerpt(text string, start, end int) string {
	end = min(end, start+2*excerptBytes)
	from, to := max(0, start-excerptBytes), min(len(text), end+excerptBytes)
	for from > 0 && text[from]&0xC0 == 0x80 {
		from--
	}
	for to < len(text) && text[to]&0xC0 == 0x80 {
		to++
	}
	out := textkit.Visible(text[from:to])
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

func (s *scanner) sorted() []Finding {
	slices.SortStableFunc(s.found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), cmp.Compare(a.Offset, b.Offset), strings.Compare(a.Rule, b.Rule))
	})
	return s.found
}

// scanTool scans all texts of a tool that models read.
func scanTool(t *Tool, fields map[string]json.RawMessage, budget *int) []Finding {
	s := scanner{server: t.Server, tool: t.Name, budget: budget}
	s.hidden("/name", t.Name)
	for _, name := range [...]string{"title", "description"} {
		if text, ok := textOf(fields[name]); ok {
			s.text("/"+name, text)
		}
	}
	for _, name := range [...]string{"annotations", "inputSchema", "outputSchema"} {
		if raw := fields[name]; len(raw) > 0 {
			s.value("/"+name, jsonwire.NewReader(raw), false)
		}
	}
	s.capability(t)
	return s.sorted()
}

// value scans all strings and names in a JSON value. named means that the names of an object
// are those of parameters.
func (s *scanner) value(at string, r *jsonwire.Reader, named bool) {
	switch r.Kind() {
	case '{':
		for key := range r.Object() {
			name := string(key)
			here := at + "/" + escapePointer(name)
			if !isPlainASCII(name) {
				s.hidden(here, name)
			}
			if named {
				s.parameter(here, name)
			}
			s.value(here, r, !named && (name == "properties" || name == "patternProperties"))
		}
	case '[':
		for i := range r.Array() {
			s.value(at+"/"+strconv.Itoa(i), r, false)
		}
	case '"':
		s.text(at, r.String())
	default:
		r.Skip()
	}
}

// text applies all rules for texts.
func (s *scanner) text(field, text string) {
	plain := text
	if !isPlainASCII(text) {
		s.hidden(field, text)
		plain = foldText(text)
	}
	s.phrases(field, text, plain)
	s.encoded(field, text)
}

// hidden reports hidden characters: one finding for each run.
func (s *scanner) hidden(field, text string) {
	runs := 0
	for i := 0; i < len(text); {
		reason, n := hiddenAt(text, i)
		if reason == "" {
			i += n
			continue
		}
		end := i + n
		for end < len(text) {
			more, n := hiddenAt(text, end)
			if more == "" {
				break
			}
			end += n
		}
		if runs < perRule {
			s.add(ruleHidden, Block, field, text, i, end, "the text has "+reason)
		}
		runs++
		i = end
	}
}

// foldText returns the text as a model may read it: characters that imitate ASCII are ASCII,
// and hidden ones are gone. Every character keeps its offset: what is shorter is padded.
func foldText(text string) string {
	out := make([]byte, 0, len(text))
	pad := 0
	for i := 0; i < len(text); {
		reason, n := hiddenAt(text, i)
		piece := text[i : i+n]
		i += n
		switch {
		case reason != "" && n > 1:
			pad += n
			continue
		case n > 1:
			r := []rune(piece)[0]
			if like := asciiLike(r); like < 0x80 {
				out = append(out, byte(like))
				pad += n - 1
				continue
			}
		}
		out = append(out, piece...)
		if c := piece[len(piece)-1]; c == ' ' || c == '\n' {
			for ; pad > 0; pad-- {
				out = append(out, ' ')
			}
		}
	}
	return string(out)
}

// phrase is a rule for texts. hints are words of which one must occur, in lower case, so that
// the expression runs only on few texts.
type phrase struct {
	rule, severity, reason string
	hints                  []string
	expr                   *regexp.Regexp
}

// expr compiles an expression in which a space matches any white space.
func expr(text string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.NewReplacer(" ?", `[\s\p{Z}]*`, " ", `[\s\p{Z}]+`).Replace(text))
}

const sensitive = `(?:credentials?|passwords?|secrets?|tokens?|api[_\s-]?keys?|private[_\s-]?keys?|ssh[_\s-]?keys?|\.env\b|id_rsa|~/\.ssh|\.aws/credentials|(?:chat|conversation|message) history|system prompt|environment variables|mcp\.json)`

// phrases are the rules for texts, in the order of their checks.
var phrases = []phrase{
	{
		ruleInjection, Block, "the text asks the model to set other instructions aside",
		[]string{"ignore", "disregard", "forget", "override", "bypass"},
		expr(`\b(?:ignore|disregard|forget|override|bypass) (?:\w+ ){0,3}?(?:previous|prior|above|earlier|preceding|existing|other|system|developer|safety|user'?s?) (?:\w+ ){0,2}?(?:instructions?|prompts?|rules?|directions?|guidelines?|messages?|policy|policies)\b`),
	},
	{
		ruleInjection, Block, "the text asks the model to set its instructions aside",
		[]string{"ignore", "disregard", "forget"},
		expr(`\b(?:ignore|disregard|forget) (?:everything|anything|all) (?:above|before|you (?:were|have been|know)|(?:that )?(?:came|was said))`),
	},
	{
		ruleInjection, Block, "the text gives the model a new role or new instructions",
		[]string{"you are now", "new instruction", "new system prompt", "real instructions", "true instructions", "developer mode", "jailbreak"},
		expr(`\byou are now (?:an? |in )(?:\w+ ){0,3}?(?:mode|assistant|ai|agent|admin\w*|root|dan|unrestricted|jailbroken)\b|\b(?:new|updated|real|true) (?:system )?(?:instructions?|prompt) ?:|\bnew instructions? (?:from|for you)\b|\b(?:enter|enable) developer mode\b|\bjailbreak (?:mode|prompt)\b`),
	},
	{
		ruleInjection, Block, "the text asks for the instructions of the model",
		[]string{"system prompt", "system message", "your instructions"},
		expr(`\b(?:reveal|print|repeat|output|include|copy|append|pass|send|leak|quote) (?:\w+ ){0,3}?(?:your|the|its) (?:\w+ )?(?:system prompt|system message|system instructions|hidden instructions|initial instructions)\b`),
	},
	{
		ruleMarkup, Block, "the text imitates the markup of a prompt",
		[]string{"<", "["},
		regexp.MustCompile(`(?i)<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|</?(?:system|important|critical|instructions?|secret|hidden|admin|override)(?: [^<>]{0,40})?>|\[/?(?:INST|SYS|SYSTEM)\]|<<SYS>>`),
	},
	{
		ruleSecrecy, Block, "the text asks the model to hide something from the user",
		[]string{"user", "human", "anyone", "operator"},
		expr(`\b(?:do not|don'?t|never|must not|should not|without) (?:ever )?(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|reveal(?:ing)?|notify(?:ing)?|show(?:ing)?|alert(?:ing)?|let(?:ting)?|disclos(?:e|ing)|explain(?:ing)?|say(?:ing)?|ask(?:ing)?) (?:(?:this|that|it|anything|about|any|of|to|the|these|those|them) ){0,4}?(?:\w+ )?(?:user|human|anyone|operator)\b|\b(?:hide|conceal|keep) (?:this|that|it|these|them) (?:\w+ )?(?:hidden |secret )?from (?:the )?(?:user|human|operator)\b|\bthe (?:user|human) (?:must|should) (?:not|never) (?:know|see|notice|find out|be (?:told|informed|aware))\b`),
	},
	{
		ruleTransfer, Block, "the text asks the model for secrets or private data",
		[]string{"credential", "password", "secret", "token", "key", ".env", "id_rsa", ".ssh", "history", "system prompt", "environment variable", "mcp.json"},
		expr(`\b(?:read|open|fetch|cat|get|load|collect|include|attach|pass|provide|send|forward|upload|post|exfiltrate|leak|copy) (?:\w+ ){0,3}?(?:contents? of )?(?:(?:the|your|their|any|all|every|user'?s) )?(?:\w+ ){0,2}?['"` + "`" + `]?` + sensitive + `['"` + "`" + `]?[^.\n]{0,60}?\b(?:as (?:the |an? )?['"` + "`" + `]?\w+['"` + "`" + `]? (?:parameter|argument|field)|in (?:the |this )?['"` + "`" + `]?\w+['"` + "`" + `]? (?:parameter|argument|field)|(?:to|at) https?://)`),
	},
	{
		ruleTransfer, Block, "the text names files with secrets",
		[]string{"id_rsa", "id_ed25519", ".ssh/", ".aws/credentials", "/etc/shadow", ".netrc", ".cursor/mcp.json", "claude_desktop_config.json"},
		regexp.MustCompile(`(?i)\bid_(?:rsa|ed25519)\b|~/\.ssh/|~/\.aws/credentials|/etc/shadow\b|~/\.netrc|~/\.cursor/mcp\.json|claude_desktop_config\.json`),
	},
	{
		ruleDirective, Ask, "the text directs when to call tools, beyond describing this one",
		[]string{"before", "first", "instead", "other tool", "any tool", "always", "must"},
		expr(`\b(?:always|must(?: always)?|you (?:must|need to|have to)) (?:first )?(?:call|use|run|invoke|execute) (?:this|the|a|an)? ?['"` + "`" + `]?[\w.-]* ?(?:tool|function)?['"` + "`" + `]? ?(?:first\b|before (?:using|calling|invoking|running|doing|any|every|each|answering|responding|replying)\b|instead of (?:any|all|other)\b|after (?:every|each|any)\b|on every\b|for (?:every|all) (?:request|message|question|task)s?\b)`),
	},
	{
		ruleDirective, Ask, "the text gives directions about other tools",
		[]string{"other tool", "any tool", "all tools", "another tool", "every tool", "other server"},
		expr(`\b(?:do not|don'?t|never|stop|avoid) (?:use|using|call|calling|invoke|invoking|run|running) (?:any|all|the|every)? ?(?:other|another|different)? ?(?:tools?|functions?|servers?)\b|\b(?:before|after|whenever|when) (?:using|calling|invoking|running|you (?:use|call)) (?:any|every|each|all|another)(?: other)? tools?\b|\b(?:takes? (?:precedence|priority) over|replaces?|supersedes?|overrides?) (?:all|any|the|every)? ?other (?:tools?|functions?|servers?)\b`),
	},
	{
		ruleDirective, Ask, "the text puts pressure on the model",
		[]string{"important", "critical", "mandatory", "otherwise", "penal", "fail"},
		expr(`\b(?:this (?:step )?is|it is) (?:absolutely )?(?:mandatory|critical|imperative) (?:that|to|for) you\b|\bor (?:else )?(?:the (?:tool|server|system)|you) will (?:not work|be (?:shut|terminated|penalized)|crash|break)\b|\botherwise (?:the (?:tool|server|system|application)) (?:will|does) not work\b`),
	},
	{
		ruleSecret, Ask, "the text has a credential",
		[]string{"akia", "asia", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk-", "sk_live_", "rk_live_", "xox", "aiza", "-----begin", "eyj", "hf_", "npm_"},
		regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pos]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{40,}|\bglpat-[A-Za-z0-9_-]{20,}|\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{24,}|\b[sr]k_live_[A-Za-z0-9]{20,}|\bxox[abprs]-[A-Za-z0-9-]{20,}|\bAIza[A-Za-z0-9_-]{35}|-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[\s\\nr]*[A-Za-z0-9+/]{40}|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{36}`),
	},
}

// phrases reports the phrases in a text. plain is the text with imitations of ASCII replaced.
func (s *scanner) phrases(field, text, plain string) {
	if len(plain) < 8 {
		return
	}
	lower := strings.ToLower(plain)
	for _, p := range phrases {
		if !slices.ContainsFunc(p.hints, func(h string) bool { return strings.Contains(lower, h) }) {
			continue
		}
		if !s.spend(len(plain), field, text) {
			return
		}
		for _, m := range p.expr.FindAllStringIndex(plain, perRule) {
			start, end := min(m[0], len(text)), min(m[1], len(text))
			s.add(p.rule, p.severity, field, text, start, end, p.reason)
		}
	}
}

// contextNames are parameters that ask the model for its context instead of for a task.
var contextNames = []string{"systemprompt", "systemmessage", "conversationhistory", "chathistory", "messagehistory", "previousmessages", "fullconversation", "chainofthought", "toollist", "availabletools", "toolslist", "sidenote"}

// parameter reports a parameter that collects the context of the model.
func (s *scanner) parameter(field, name string) {
	plain := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(removeHidden(name)))
	if slices.Contains(contextNames, plain) {
		s.add(ruleContext, Ask, field, name, 0, len(name), "the parameter asks for the context of the model")
	}
}

// Verbs of names, by what they do.
var (
	deletingVerbs = []string{"delete", "remove", "drop", "destroy", "purge", "wipe", "truncate", "erase", "terminate"}
	changingVerbs = []string{"create", "update", "write", "insert", "set", "send", "post", "put", "execute", "exec", "deploy", "edit", "modify", "rename", "upload", "publish", "install", "kill", "revoke", "grant"}
)

// capability reports annotations that contradict the name of the tool.
func (s *scanner) capability(t *Tool) {
	words := textkit.Words(t.Name)
	if len(words) == 0 {
		return
	}
	deletes := slices.Contains(deletingVerbs, words[0])
	changes := deletes || slices.Contains(changingVerbs, words[0])
	a := t.Spec.Annotations
	switch {
	case a.ReadOnly != nil && *a.ReadOnly && changes:
		s.add(ruleCapability, Ask, "/annotations/readOnlyHint", t.Name, 0, len(t.Name), "the tool claims that it only reads, but its name says that it changes something")
	case a.Destructive != nil && !*a.Destructive && deletes:
		s.add(ruleCapability, Ask, "/annotations/destructiveHint", t.Name, 0, len(t.Name), "the tool claims that it destroys nothing, but its name says that it deletes something")
	}
}
