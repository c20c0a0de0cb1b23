package errorcatalog

func policies() section {
	const why = `dragoman tools why shell --policy policy.yaml --args '{"command":"ls"}'`
	rules := func(rules string) map[string]string {
		return map[string]string{"policy.yaml": "version: 1\nrules:\n" + rules}
	}
	return section{
		title: "In a policy",
		intro: "A policy that cannot be read or applied denies everything: `dragoman run` does not start, and the gateway keeps its old config.",
		entries: []entry{
			{
				title: "Unknown field in a policy", command: why, files: rules("  - {id: no-removal, efect: deny, when: {tool: shell}}\n"),
				means: "The rule has a field that does not exist.", fix: "Correct its name.",
			},
			{
				title: "Rule for a tool that does not exist", command: why, files: rules("  - {id: no-removal, effect: deny, when: {tool: shel}}\n"),
				means: "The rule could never apply, which usually means that it is misspelled and protects nothing.", fix: "Correct the name, or remove the rule.",
			},
			{
				title: "Invalid expression", command: why, files: rules("  - {id: no-removal, effect: deny, when: {tool: shell, expression: args.command.includes(\"rm\")}}\n"),
				means: "The expression is not valid CEL at this position.", fix: "Use a function that exists: `args.command.contains(\"rm\")`.",
			},
			{
				title: "Unknown effect", command: why, files: rules("  - {id: no-removal, effect: forbid, when: {tool: shell}}\n"),
				means: "A rule denies, allows, asks, or asks for input.", fix: "Use one of the four effects.",
			},
			{
				title: "Two rules with one id", command: why, files: rules("  - {id: shell, effect: deny, when: {tool: shell, expression: 'args.command == \"rm\"'}}\n  - {id: shell, effect: ask, when: {tool: shell}}\n"),
				means: "Logs and explanations identify rules by id, so each id must be unique.", fix: "Rename one of the rules.",
			},
		},
	}
}
