// Package skill finds skills and offers them to an agent. A skill is a folder with a file
// SKILL.md: a name, a description and instructions, and any files that the instructions use.
//
//	skills, err := skill.Find(".")
//	a := agent.Agent{
//		Model:        model,
//		Instructions: "You maintain this repository." + skills.Instructions(),
//		Tools:        append(tools, skills.Tools()...),
//	}
//
// The instructions list names and descriptions only. The model loads a skill with the tool
// load_skill when a task needs it, and reads its other files with read_skill_file.
//
// What a skill can and cannot do:
//   - Its text is read by the model as instructions. Only use folders that you trust as much as
//     your own prompts, or pin their contents (see [Pins]).
//   - It permits nothing. Its scripts run only if the agent has a tool that runs commands, with
//     the approval that the tool needs. The field allowed-tools is shown, not obeyed.
//   - Reads are confined to its folder, symlinks included, and to the files that were there when
//     it was found, with the content that they had.
//
// The package does not fetch skills from anywhere, and runs nothing.
package skill
