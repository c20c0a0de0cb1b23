package policy

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/dragoman-go/dragoman/internal/text/shell"
)

const (
	shellType     = "Shell"
	shellOverload = "shell_string"
)

// shellTypes declares [shell.Command] in CEL, with the names of its JSON fields.
func shellTypes() cel.EnvOption {
	return cel.Types(cel.NativeTypeFor[shell.Command](cel.NativeTypeAlias(shellType), ext.ParseStructTag("json")))
}

// shellFunction declares the function shell(string). It needs the types of env.
func shellFunction(env *cel.Env) cel.EnvOption {
	adapter := env.CELTypeAdapter()
	return cel.Function("shell", cel.Overload(shellOverload, []*cel.Type{cel.StringType}, cel.ObjectType(shellType),
		cel.UnaryBinding(func(v ref.Val) ref.Val {
			command, ok := v.(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
			return adapter.NativeToValue(readCommand(string(command)))
		})))
}

// unknownProgram represents a program that cannot be known in [shell.Command].
const unknownProgram = "?"

// readCommand describes a command for any shell, because it is unknown which shell runs it: [[
// a || b ]] is a test in one and runs b in another. A command that only Bash can parse gets
// the programs that Bash would run, and an unknown program.
func readCommand(text string) shell.Command {
	c, err := shell.ParseScript(text)
	if err == nil {
		return c
	}
	if bash, wrong := shell.Parse(text); wrong == nil {
		if !slices.Contains(bash.Programs, unknownProgram) {
			bash.Programs = append(bash.Programs, unknownProgram)
		}
		return bash
	}
	return c // the command holds the error
}

// shellCost charges for the length of the command, which is parsed more than once.
func shellCost(args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	if s, ok := args[0].(types.String); ok {
		cost += 2 * uint64(min(len(s), shell.MaxCommand))
	}
	return &cost
}
