package catalog

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}={0,2}`)
	hexRun    = regexp.MustCompile(`(?:\\x[0-9a-fA-F]{2}){8,}|(?:0x)?(?:[0-9a-fA-F]{2}){10,}`)
	// command matches what a shell or an interpreter would run.
	command = regexp.MustCompile(`(?i)\b(?:curl|wget)\b[^\n]{0,200}(?:https?://|\||-o\b|-d\b)|\b(?:bash|sh|zsh|cmd|powershell|pwsh)(?:\.exe)? (?:-[a-z]*c\b|/c\b|-e\b|-enc)|/bin/(?:ba|z)?sh\b|\|\s*(?:ba|z)?sh\b|\brm -[rf]{1,2}\b|/dev/tcp/|\bnc(?:at)? (?:-[a-z]*e|\S+ \d{2,5})|\beval\s*\(|\bexec\s*\(|os\.system|subprocess\.|child_process|invoke-(?:expression|webrequest)|\biex\b|base64 (?:-d|--decode)|\bcat (?:/etc/|~/\.ssh|\S*\.env\b|\S*id_rsa)|\bscp \S|\bchmod \+x|ignore (?:all )?previous instructions`)
)

const (
	maxRuns    = 64
	maxDecoded = 16 << 10
)

// encoded reports base64 and hexadecimal text that decodes to a command.
func (s *scanner) encoded(field, text string) {
	const shortest = 20
	if len(text) < shortest || !s.spend(len(text)/shortest, field, text) {
		return
	}
	for _, m := range base64Run.FindAllStringIndex(text, maxRuns) {
		if isCommand(decodeBase64(text[m[0]:m[1]]), 0) {
			s.add(ruleEncoded, Block, field, text, m[0], m[1], "the text has a command in base64")
		}
	}
	for _, m := range hexRun.FindAllStringIndex(text, maxRuns) {
		if isCommand(decodeHex(text[m[0]:m[1]]), 0) {
			s.add(ruleEncoded, Block, field, text, m[0], m[1], "the text has a command in hexadecimal")
		}
	}
}

// isCommand reports whether a decoded text is a command, or encodes one again.
func isCommand(text string, depth int) bool {
	const most = 2
	if text == "" || depth > most {
		return false
	}
	if command.MatchString(text) {
		return true
	}
	for _, run := range base64Run.FindAllString(text, maxRuns) {
		if isCommand(decodeBase64(run), depth+1) {
			return true
		}
	}
	return false
}

// decodeBase64 returns the text that a run encodes, or "" if that is not text.
func decodeBase64(run string) string {
	run = strings.TrimRight(run, "=")
	if len(run) > maxDecoded {
		run = run[:maxDecoded]
	}
	run = run[:len(run)-btoi(len(run)%4 == 1)]
	for _, enc := range [...]*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(run); err == nil {
			return decodedText(b)
		}
	}
	return ""
}

func decodeHex(run string) string {
	run = strings.TrimPrefix(strings.ReplaceAll(run, `\x`, ""), "0x")
	if len(run) > maxDecoded {
		run = run[:maxDecoded]
	}
	b, err := hex.DecodeString(run[:len(run)/2*2])
	if err != nil {
		return ""
	}
	return decodedText(b)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// decodedText returns bytes as text, also from UTF-16, or "" if they are not text.
func decodedText(b []byte) string {
	if len(b) >= 4 && b[1] == 0 && b[3] == 0 { // UTF-16, as PowerShell encodes commands
		narrow := make([]byte, 0, len(b)/2)
		for i := 0; i+1 < len(b); i += 2 {
			narrow = append(narrow, b[i])
		}
		b = narrow
	}
	if !utf8.Valid(b) && !utf8.Valid(b[:max(0, len(b)-utf8.UTFMax)]) {
		return ""
	}
	printable := 0
	for _, c := range b {
		if c >= 0x20 && c < 0x7F || c == '\n' || c == '\t' || c == '\r' {
			printable++
		}
	}
	const share = 10 // nine of ten bytes
	if len(b) == 0 || (len(b)-printable)*share > len(b) {
		return ""
	}
	return string(b)
}
