// The `tokenmill` command: every command by name, and how each ends. What a command does is in the file of its family.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { endWithParent } from '../src/lifetime.ts'
import { registerBatch } from './commands/batch.ts'
import { registerBinTable } from './commands/bin-table.ts'
import { registerCaptureKey } from './commands/capture-key.ts'
import { registerClientFamily } from './commands/client/client.ts'
import { registerEncryptCard } from './commands/encrypt-card.ts'
import { registerFailed } from './commands/failed.ts'
import { registerIngest } from './commands/ingest.ts'
import { registerManifest } from './commands/manifest.ts'
import { registerMigrate } from './commands/migrate.ts'
import { registerExplain } from './commands/operate/explain.ts'
import { registerReport } from './commands/report.ts'
import { registerResults } from './commands/results.ts'
import { registerRun } from './commands/run.ts'
import { registerSchedule } from './commands/schedule.ts'
import { registerSchema } from './commands/schema.ts'
import { registerScheme } from './commands/scheme.ts'
import { registerScope } from './commands/scope.ts'
import { registerSimulate } from './commands/simulate.ts'
import { registerSubmit } from './commands/submit.ts'
import { registerThreeDsContract } from './commands/threeds-contract.ts'
import { EXIT, endingOf } from './exit.ts'
import { processTerminal, say, type Terminal } from './terminal.ts'

const SCRIPT = fileURLToPath(import.meta.url)

/** In the order of `--help`. */
const FAMILIES: ((program: Command, terminal: Terminal) => void)[] = [
  (program, terminal) => registerRun(program, terminal, SCRIPT),
  registerSchema,
  registerClientFamily,
  registerScope,
  registerThreeDsContract,
  registerCaptureKey,
  registerEncryptCard,
  registerMigrate,
  registerSubmit,
  registerManifest,
  registerIngest,
  registerResults,
  registerBatch,
  registerExplain,
  registerReport,
  registerSchedule,
  registerFailed,
  registerScheme,
  registerBinTable,
  registerSimulate,
]

/** Runs one command line (without program names) to its end; answers its exit status and never throws. */
export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  const program = buildProgram(terminal)
  try {
    await program.parseAsync(words, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    const { status, line } = endingOf(error)
    if (line !== undefined) say(terminal, `tokenmill: ${line}`)
    return status
  }
}

function buildProgram(terminal: Terminal): Command {
  const program = new Command('tokenmill')
    .description('A card-token vault worked through queues. Settings are read from the environment; see README.md.')
    .version(version(), '-V, --version')
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: text => terminal.stdout.write(text),
      writeErr: text => terminal.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'tokenmill: ')),
    })
  for (const register of FAMILIES) register(program, terminal)
  return program
}

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}

if (import.meta.main) {
  endWithParent()
  // Listening for the parent's end would else keep a process that is through with its work.
  process.channel?.unref()
  const status = await run(process.argv.slice(2), processTerminal())
  // A command that ended well may have set another status itself: some records were rejected.
  if (status !== EXIT.ok) process.exitCode = status
}
