// `tokenmill simulate three-ds`: a directory server with access control servers behind it, in the foreground.
import { type Command, InvalidArgumentError } from 'commander'
import { untilSignal } from '../../src/lifetime.ts'
import { CODE } from '../../src/simulate/three-ds/cards.ts'
import { startThreeDsSimulator, type ThreeDsSimulator } from '../../src/simulate/three-ds/three-ds.ts'
import { addCommand, type JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { print, say, type Terminal } from '../terminal.ts'

interface Options extends JsonOption {
  port: number
  host: string
  publicUrl?: string
}

/** `family`: the word `simulate`. */
export function addThreeDs(family: Command, terminal: Terminal): void {
  addCommand(family, 'three-ds', 'runs a simulated 3-D Secure directory server with its issuers')
    .option('--port <n>', 'port to listen on; 0: any free port', readPort, 8391)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--public-url <url>', 'the URL at which browsers reach it, if that differs', readUrl)
    .action((options: Options) => run(terminal, options))
}

export function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError('It is not a port, 0 to 65535.')
  return port
}

export function readUrl(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('It is not an http or https URL.')
  return text
}

async function run(terminal: Terminal, options: Options): Promise<void> {
  const { port, host, publicUrl } = options
  const simulator = await startThreeDsSimulator({
    port,
    host,
    ...(publicUrl === undefined ? {} : { publicUrl }),
  }).catch((error: NodeJS.ErrnoException): ThreeDsSimulator => {
    if (error.code === 'EADDRINUSE') throw new Stop(`port ${port} is taken; choose another with --port`)
    throw error
  })
  try {
    const settings = { TOKENMILL_PRIVATE_HOSTS: new URL(simulator.url).host }
    const line = `TOKENMILL_PRIVATE_HOSTS=${settings.TOKENMILL_PRIVATE_HOSTS}`
    const ended = untilSignal()
    print(terminal, options, { directory_server: simulator.url, code: CODE, ...settings }, line)
    say(
      terminal,
      `The directory server is ${simulator.url}; challenges take the code ${CODE}. Start tokenmill with the setting above. Ctrl-C ends it.`,
    )
    await ended
  } finally {
    await simulator.close()
  }
}
