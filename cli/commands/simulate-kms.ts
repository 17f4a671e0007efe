// `tokenmill simulate kms`: runs a simulated AWS KMS in the foreground.
import { untilSignal } from '../../src/lifetime.ts'
import { ACCOUNT, type KmsSimulator, startKmsSimulator } from '../../src/simulate/kms/kms.ts'
import type { JsonOption } from '../command.ts'
import { Stop } from '../exit.ts'
import { print, say, type Terminal } from '../terminal.ts'

interface Options extends JsonOption {
  port: number
  host: string
}

/** Every key of the account exists; this is one of them. */
const EXAMPLE = `aws-kms://arn:aws:kms:eu-central-1:${ACCOUNT}:key/00000000-0000-4000-8000-000000000001`

export async function kms(terminal: Terminal, options: Options): Promise<void> {
  const simulator = await startKmsSimulator(options).catch((error: NodeJS.ErrnoException): KmsSimulator => {
    if (error.code === 'EADDRINUSE') throw new Stop(`port ${options.port} is taken; choose another with --port`)
    throw error
  })
  try {
    const settings = { TOKENMILL_KEK: EXAMPLE, ...simulator.env }
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
    const ended = untilSignal()
    print(terminal, options, settings, lines)
    say(
      terminal,
      'Start tokenmill with the settings above. For rehearsals only: whoever knows the ARN can open what such a key wraps. Ctrl-C ends it.',
    )
    await ended
  } finally {
    await simulator.close()
  }
}
