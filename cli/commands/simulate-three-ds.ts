// `tokenmill simulate three-ds`: runs a directory server with access control servers in the foreground.
import { untilSignal } from '../../src/lifetime.ts'
import { CODE } from '../../src/simulate/three-ds/cards.ts'
import { startThreeDsSimulator, type ThreeDsSimulator } from '../../src/simulate/three-ds/three-ds.ts'
import type { JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { print, say, type Terminal } from '../terminal.ts'

interface Options extends JsonOption {
  port: number
  host: string
  publicUrl?: string
}

export async function threeDs(terminal: Terminal, options: Options): Promise<void> {
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
