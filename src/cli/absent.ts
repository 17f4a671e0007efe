// Commands of the interface that this release doesn't do: known by name, refused in one line.
import type { Command } from 'commander'
import { EXIT, Stop } from './exit.ts'

const ABSENT = {
  'three-ds': 'the 3-D Secure service',
} as const

export function registerAbsent(program: Command): void {
  for (const [name, what] of Object.entries(ABSENT)) {
    program
      .command(`${name} [words...]`)
      .description(`${what} (not in this release)`)
      .allowUnknownOption()
      .action(() => {
        throw new Stop(`\`${name}\` is not in this release; see CHANGELOG.md`, EXIT.unavailable)
      })
  }
}
