// `tokenmill simulate …`: simulated servers of networks and third parties, for rehearsals. Each simulator adds its
// command here and is otherwise alone in src/simulate.
import { join, resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { readConfig } from '../../src/config.ts'
import { untilSignal } from '../../src/lifetime.ts'
import { openSchemeSimulator, type SchemeSimulator } from '../../src/simulate/scheme/scheme.ts'
import { addCommand, addFamily, type JsonOption, readCount } from '../command.ts'
import { Stop } from '../exit.ts'
import { print, say, type Terminal } from '../terminal.ts'
import { addThreeDs, readPort, readUrl } from './simulate-three-ds.ts'

/** In the order of `--help`. */
const SIMULATORS: ((family: Command, terminal: Terminal) => void)[] = [addScheme, addThreeDs]

export function registerSimulate(program: Command, terminal: Terminal): void {
  const family = addFamily(program, 'simulate', 'simulated networks for tests')
  for (const add of SIMULATORS) add(family, terminal)
}

interface SchemeOptions extends JsonOption {
  port: number
  host: string
  data?: string
  rate: number
  latency: number
  notify?: string
}

function addScheme(family: Command, terminal: Terminal): void {
  addCommand(family, 'scheme', 'runs a simulated scheme-token network and third party')
    .option('--port <n>', 'port to listen on; 0: any free port', readPort, 8390)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--data <dir>', 'folder for keys, scheme file and tokens (default: simulator in the data directory)')
    .option('--rate <n>', 'calls per second that the simulator allows', readCount, 200)
    .option('--latency <ms>', 'minimum duration of each answer', readMs, 0)
    .option('--notify <url>', 'the URL to which lifecycle notifications go', readUrl)
    .action((options: SchemeOptions) => scheme(terminal, options))
}

function readMs(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('It is not a number of milliseconds.')
  return Number(text)
}

async function scheme(terminal: Terminal, options: SchemeOptions): Promise<void> {
  const folder = options.data ? resolve(options.data) : join(readConfig(terminal.env).dataDir, 'simulator')
  const simulator = await openSchemeSimulator({
    host: options.host,
    port: options.port,
    folder,
    ratePerSecond: options.rate,
    latencyMs: options.latency,
    notifyUrl: options.notify,
  }).catch((error: NodeJS.ErrnoException): SchemeSimulator => {
    if (error.code === 'EADDRINUSE') throw new Stop(`port ${options.port} is taken; choose another with --port`)
    throw error
  })
  const settings = { TOKENMILL_SCHEME_FILE: simulator.schemeFile, TOKENMILL_PRIVATE_HOSTS: simulator.address }
  const line = Object.entries(settings)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
  // Listens for signals before it prints that the simulator runs: a reader of that line may send a signal at once.
  const ended = untilSignal()
  print(terminal, options, { url: simulator.url, ...settings }, line)
  say(
    terminal,
    `The scheme simulator listens on ${simulator.url}. Start tokenmill with the settings above. Ctrl-C ends it.`,
  )
  await ended
  await simulator.close()
}
