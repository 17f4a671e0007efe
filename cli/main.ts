// The `tokenmill` command: lists every command with its name and one line of description. usage/ defines the arguments
// of a command, and is loaded if its name is in the command line. commands/ does the work, and is loaded when the
// command runs. So help and refusals are fast.
import { fileURLToPath } from 'node:url'
import { Command, CommanderError, Help } from 'commander'
import { endWithParent } from '../src/lifetime.ts'
import { readVersion } from '../src/version.ts'
import { EXIT } from './exit.ts'
import { print, processTerminal, say, type Terminal, takeConsole } from './terminal.ts'

const SCRIPT = fileURLToPath(import.meta.url)

/** Adds arguments, options and further commands to `command`. `script`: this file, from which roles are forked. */
type Usage = (command: Command, terminal: Terminal, script: string) => void

/** A family whose commands are defined in two files. */
function both(one: Usage, other: Usage): Usage {
  return (command, terminal, script) => {
    one(command, terminal, script)
    other(command, terminal, script)
  }
}

interface Entry {
  /** The command's line in `--help`: its name, whether it has options, its arguments. */
  term: string
  description: string
  load: () => Promise<Usage>
}

/** The commands in the order of `--help`. */
const ENTRIES: Entry[] = [
  {
    term: 'start',
    description: 'runs every role in the foreground; without DATABASE_URL and REDIS_URL on the embedded engine',
    load: async () => (await import('./usage/roles.ts')).start,
  },
  {
    term: 'demo',
    description: 'migrates a sample of test cards on the embedded engine, in the folder .tokenmill-demo',
    load: async () => (await import('./usage/demo.ts')).demo,
  },
  {
    term: 'gateway',
    description: 'serves the HTTP interface; settings name its address, time-outs and certificates',
    load: async () => (await import('./usage/roles.ts')).gateway,
  },
  {
    term: 'three-ds',
    description: 'serves 3-D Secure over HTTP; the only HTTP role that needs the key-encryption key',
    load: async () => (await import('./usage/roles.ts')).threeDs,
  },
  {
    term: 'console',
    description: 'serves pages for people in a browser; settings name its address and its origin',
    load: async () => (await import('./usage/roles.ts')).consoleRole,
  },
  {
    term: 'workers [options]',
    description: 'runs worker processes, some for interactive kinds and some for bulk kinds',
    load: async () => (await import('./usage/roles.ts')).workers,
  },
  {
    term: 'scheduler',
    description: 'runs scheduled work: nightly reports, end of tokens by date, retention, the failed set',
    load: async () => (await import('./usage/roles.ts')).scheduler,
  },
  {
    term: 'schema',
    description: 'the database schema',
    load: async () => (await import('./usage/schema.ts')).schema,
  },
  {
    term: 'system',
    description: "the keys by which tokenmill's own processes sign",
    load: async () => (await import('./usage/system.ts')).system,
  },
  {
    term: 'client',
    description: 'clients, their keys and API keys',
    load: async () => (await import('./usage/client.ts')).client,
  },
  {
    term: 'person',
    description: 'people who use the console: invites, lists and revokes them',
    load: async () => (await import('./usage/person.ts')).person,
  },
  {
    term: 'display',
    description: 'wall displays of the page Now: adds, lists and revokes them',
    load: async () => (await import('./usage/display.ts')).display,
  },
  {
    term: 'scope',
    description: 'token scopes: a card has one token in each',
    load: async () => (await import('./usage/scope.ts')).scope,
  },
  {
    term: 'threeds-contract',
    description: '3-D Secure contracts',
    load: async () => (await import('./usage/threeds-contract.ts')).threeDsContract,
  },
  {
    term: 'capture-key',
    description: 'key pairs for encrypting cards',
    load: async () => (await import('./usage/cards.ts')).captureKey,
  },
  {
    term: 'key',
    description: "the vault's keys: what there is, how they are replaced, their backup and their end",
    load: async () => (await import('./usage/key.ts')).key,
  },
  {
    term: 'encrypt-card [options]',
    description: 'encrypts a card: JSON on standard input, encrypted_card on standard output',
    load: async () => (await import('./usage/cards.ts')).encryptCard,
  },
  {
    term: 'migrate [options] <file...>',
    description: 'makes a token for every card of a file (.csv, .ndjson; .gz; .pgp, .gpg, .asc; - for standard input)',
    load: async () => (await import('./usage/files.ts')).migrate,
  },
  {
    term: 'inspect [options] <file>',
    description: 'says what is in a file of cards, and sends nothing (- for standard input)',
    load: async () => (await import('./usage/files.ts')).inspect,
  },
  {
    term: 'profile',
    description: 'how providers write their files: lists, shows and checks profiles for migrate --from',
    load: async () => (await import('./usage/files.ts')).profile,
  },
  {
    term: 'submit [options] <file>',
    description: 'sends one job per line, {kind, request, jti?, reference?, sequence?}; prints results as NDJSON',
    load: async () => (await import('./usage/files.ts')).submit,
  },
  {
    term: 'manifest',
    description: 'manifests of migrations',
    load: async () => (await import('./usage/manifest.ts')).manifest,
  },
  {
    term: 'ingest',
    description: 'reads files of transactions and orders into the store',
    load: async () => (await import('./usage/ingest.ts')).ingest,
  },
  {
    term: 'results',
    description: "a client's results queue",
    load: async () => (await import('./usage/results.ts')).results,
  },
  {
    term: 'references',
    description: 'whose cards tokens stand for: exported, and compared with what was expected',
    load: async () => {
      const { references } = await import('./usage/references.ts')
      const { missingReferences } = await import('./usage/operate/references.ts')
      return both(references, missingReferences)
    },
  },
  {
    term: 'batch',
    description: 'batches: what they have come to, and their pause or end',
    load: async () => (await import('./usage/batch.ts')).batch,
  },
  {
    term: 'report',
    description: 'reports',
    load: async () => (await import('./usage/report.ts')).report,
  },
  {
    term: 'schedule',
    description: 'reports for every night',
    load: async () => (await import('./usage/schedule.ts')).schedule,
  },
  {
    term: 'events',
    description: 'subscriptions to events, and webhooks',
    load: async () => (await import('./usage/events.ts')).events,
  },
  {
    term: 'explain [options] <what> [line]',
    description: 'says what became of a job, a token or a line of a batch',
    load: async () => (await import('./usage/operate/explain.ts')).explain,
  },
  {
    term: 'status [options]',
    description: 'says whether everything is well: 0 well, 1 warning, 2 critical',
    load: async () => (await import('./usage/operate/status.ts')).status,
  },
  {
    term: 'doctor [options]',
    description: 'names settings that will hurt',
    load: async () => (await import('./usage/operate/status.ts')).doctor,
  },
  {
    term: 'failed',
    description: 'jobs that failed for good',
    load: async () => (await import('./usage/operate/failed.ts')).failed,
  },
  {
    term: 'audit',
    description: 'who did what: lists, follows, exports and verifies the audit',
    load: async () => {
      const { audit } = await import('./usage/audit.ts')
      const personProof = async () => (await import('../src/acts/person-proof.ts')).checkPersonProof
      return (command, terminal) => audit(command, terminal, { personProof })
    },
  },
  {
    term: 'scheme',
    description: 'scheme tokens, and their outstanding calls to networks',
    load: async () => (await import('./usage/scheme.ts')).scheme,
  },
  {
    term: 'bin-table',
    description: 'the BIN table: issuers by first digits',
    load: async () => (await import('./usage/bin-table.ts')).binTable,
  },
  {
    term: 'simulate',
    description: 'simulated networks for tests',
    load: async () => (await import('./usage/simulate.ts')).simulate,
  },
]

/** Runs one command line (without program names) to its end. Returns its exit status and never throws. */
export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const program = await buildProgram(words, { ...terminal, words })
    await program.parseAsync(shieldKids(words), { from: 'user' })
    return EXIT.ok
  } catch (error) {
    // The user asked for help or version (0), or commander has refused the command line and printed why.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    const { endingOf } = await import('./ending.ts')
    const { status, line } = endingOf(error)
    if (line !== undefined) say(terminal, `tokenmill: ${line}`)
    return status
  }
}

/**
 * A thumbprint of a key (RFC 7638: 43 characters of base64url) begins with a dash once in 64, and would be read as an
 * option. Every command takes it as its last argument, so it may stand last, after `--`.
 */
function shieldKids(words: readonly string[]): readonly string[] {
  const isShielded = (word: string) => /^-[\w-]{42}$/.test(word)
  const kids = words.filter(isShielded)
  if (kids.length === 0 || words.includes('--')) return words
  return [...words.filter(word => !isShielded(word)), '--', ...kids]
}

/** All commands by name; only those whose names are among the words have their arguments and options. */
async function buildProgram(words: readonly string[], terminal: Terminal): Promise<Command> {
  const program = new Command('tokenmill')
    .description(
      'A card-token vault worked through queues. Settings are read from the environment; see docs/settings.md.',
    )
    .version(readVersion(), '-V, --version')
    .exitOverride()
    .showSuggestionAfterError()
    // So that `migrate diff` and `migrate` may have options of the same names.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: text => print(terminal, {}, undefined, linesIn(text)),
      writeErr: text => {
        for (const line of linesIn(text)) say(terminal, line)
      },
      outputError: text => {
        for (const line of linesOfError(text)) say(terminal, line)
      },
    })
  const terms = new Map<Command, string>()
  for (const { term, description, load } of ENTRIES) {
    const command = program.command(term.replace(' [options]', '')).description(description)
    terms.set(command, term)
    if (words.includes(command.name())) (await load())(command, terminal, SCRIPT)
  }
  // After the commands are made, because they would inherit it otherwise.
  const plain = new Help()
  program.configureHelp({ subcommandTerm: command => terms.get(command) ?? plain.subcommandTerm(command) })
  return program
}

const linesIn = (text: string) => text.replace(/\n$/, '').split('\n')

/** A refusal repeats words of the command line, which may hold line feeds; only a suggestion is a line of its own. */
function linesOfError(text: string): string[] {
  const line = text.replace(/^error: /, 'tokenmill: ').replace(/\n$/, '')
  return line.split(/\n(?=\(Did you mean [^\n]*\)$)/)
}

/** Runs the command line of this process. */
export async function main(): Promise<void> {
  endWithParent()
  // The listener for the parent's end would otherwise keep a finished process alive.
  process.channel?.unref()
  const terminal = processTerminal()
  takeConsole(terminal)
  process.on('uncaughtException', async error => (await import('./ending.ts')).endUncaught(terminal, error))
  const status = await run(process.argv.slice(2), terminal)
  // A command that ended well may have set another status itself, for example because some records were rejected.
  if (status !== EXIT.ok) process.exitCode = status
}

if (import.meta.main) await main()
