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

// shellTypes tells CEL what a [shell.Command] is, by the names of its JSON.
func shellTypes() cel.EnvOption {
	return cel.Types(cel.NativeTypeFor[shell.Command](cel.NativeTypeAlias(shellType), ext.ParseStructTag("json")))
}

// shellFunction gives expressions shell(string). It needs the types of env.
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

// unknownProgram stands in [shell.Command] for programs that cannot be known.
const unknownProgram = "?"

// readCommand says what a command would do in any shell: nobody says which one gets
// it, and to one [[ a || b ]] is a test, to another it runs b. What only Bash can read
// is what Bash would do, and an unknown program.
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
	return c // the error is in it
}

// shellCost charges a parse by the command's length, which is read more than once.
func shellCost(args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	if s, ok := args[0].(types.String); ok {
		cost += 2 * uint64(min(len(s), shell.MaxCommand))
	}
	return &cost
}
