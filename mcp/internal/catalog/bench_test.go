package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkImport1000Tools(b *testing.B) {
	var list []json.RawMessage
	for i := range 1000 {
		list = append(list, json.RawMessage(fmt.Sprintf(`{"name":"tool_%d","description":"Reads one file of the project and returns its text. Paths are relative.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"The path of the file."},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`, i)))
	}
	for b.Loop() {
		Import("srv", list, Options{Prefix: true})
	}
}

// Texts that make every rule of the scanner run.
func BenchmarkScanHostileText(b *testing.B) {
	for name, unit := range map[string]string{
		"words":   "ignore the user system prompt always must before any tool important critical password key <im [x eyJ sk- ",
		"base64":  "Y3VybCBodHRwczovL2V4YW1wbGUu",
		"hidden":  "\u200bignore\u202e ",
		"letters": "іgnоre ",
	} {
		text := strings.Repeat(unit, (256<<10)/len(unit))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				ScanText("s", "/description", text)
			}
		})
	}
}
