package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

const bashCompletion = `_posthorn() {
  local words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
  local current="${COMP_WORDS[COMP_CWORD]}"
  [[ $current == -* ]] && words+=("$current")
  COMPREPLY=($(compgen -W "$(posthorn "${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$current"))
}
complete -o default -F _posthorn posthorn
`

const zshCompletion = `#compdef posthorn
_posthorn() {
  local -a words_before choices
  words_before=("${words[@]:1:$CURRENT-2}")
  [[ ${words[$CURRENT]} == -* ]] && words_before+=("${words[$CURRENT]}")
  choices=("${(@f)$(_CLI_ZSH_AUTOCOMPLETE_HACK=1 posthorn "${words_before[@]}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n ${choices[1]} ]]; then _describe 'posthorn' choices; else _files; fi
}
compdef _posthorn posthorn
`

func completionCommand(deps Deps) *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "Print a completion script for a shell",
		ArgsUsage:   "bash|zsh|fish",
		Description: "Put it where your shell reads it, as in: source <(posthorn completion bash)",
		Action: func(c *cli.Context) error {
			given, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			script := ""
			switch given[0] {
			case "bash":
				script = bashCompletion
			case "zsh":
				script = zshCompletion
			case "fish":
				if script, err = c.App.ToFishCompletion(); err != nil {
					return fmt.Errorf("write completion: %w", err)
				}
			default:
				return misuse("bash, zsh or fish", "there is no completion for %q", given[0])
			}
			fmt.Fprint(deps.Out, script)
			return nil
		},
	}
}
