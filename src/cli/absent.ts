// Commands of the interface that this release doesn't do: known by name, refused in one line.
import type { Command } from 'commander'
import { EXIT, Stop } from './exit.ts'

const ABSENT = {
  gateway: 'the HTTP interface',
  'three-ds': 'the 3-D Secure service',
  report: 'reports: request, list, download',
  schedule: 'scheduled reports: add, list, remove',
  ingest: 'ledger transactions: ingest transactions FILE',
  simulate: 'the scheme-token network, to rehearse against: simulate scheme',
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
