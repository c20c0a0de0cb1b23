package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/dragoman-go/dragoman/tool/shell"
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
			s, _ := shell.Parse(string(command)) // the error is in it
			return adapter.NativeToValue(s)
		})))
}

// shellCost charges a parse by the command's length.
func shellCost(args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	if s, ok := args[0].(types.String); ok {
		cost += uint64(min(len(s), shell.MaxCommand))
	}
	return &cost
}
