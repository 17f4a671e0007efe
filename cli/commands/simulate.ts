// `tokenmill simulate scheme`: runs a simulated network and third party in the foreground, for rehearsals.
import { join, resolve } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { untilSignal } from '../../src/lifetime.ts'
import { openSchemeSimulator, type SchemeSimulator } from '../../src/simulate/scheme/scheme.ts'
import type { JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { print, say, type Terminal } from '../terminal.ts'

interface SchemeOptions extends JsonOption {
  port: number
  host: string
  data?: string
  rate: number
  latency: number
  notify?: string
}

export async function scheme(terminal: Terminal, options: SchemeOptions): Promise<void> {
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
  // The command listens for signals before it prints that the simulator runs: a program that reads that line may send a
  // signal at once.
  const ended = untilSignal()
  print(terminal, options, { url: simulator.url, ...settings }, line)
  say(
    terminal,
    `The scheme simulator listens on ${simulator.url}. Start tokenmill with the settings above. Ctrl-C ends it.`,
  )
  await ended
  await simulator.close()
}
