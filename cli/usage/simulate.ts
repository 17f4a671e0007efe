// Defines the arguments and options of `tokenmill simulate`. The code that runs it is loaded only when it is needed.
import { type Command, InvalidArgumentError } from 'commander'
import { addCommand, readCount } from '../command.ts'
import type { Terminal } from '../terminal.ts'

export function simulate(family: Command, terminal: Terminal): void {
  addScheme(family, terminal)
  addThreeDs(family, terminal)
  addKms(family, terminal)
}

function addScheme(family: Command, terminal: Terminal): void {
  addCommand(family, 'scheme', 'runs a simulated scheme-token network and third party')
    .option('--port <n>', 'port to listen on; 0: any free port', readPort, 8390)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--data <dir>', 'folder for keys, scheme file and tokens (default: simulator in the data directory)')
    .option('--rate <n>', 'calls per second that the simulator allows', readCount, 200)
    .option('--latency <ms>', 'minimum duration of each answer', readMs, 0)
    .option('--notify <url>', 'the URL to which lifecycle notifications go', readUrl)
    .action(async options => (await import('../commands/simulate.ts')).scheme(terminal, options))
}

function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError('It is not a port.')
  return port
}

function readMs(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('It is not a number of milliseconds.')
  return Number(text)
}

function readUrl(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('It is not an http or https URL.')
  return text
}

function addThreeDs(family: Command, terminal: Terminal): void {
  addCommand(family, 'three-ds', 'runs a simulated 3-D Secure directory server with its issuers')
    .option('--port <n>', 'port to listen on; 0: any free port', readPort, 8391)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--public-url <url>', 'the URL at which browsers reach it, if that differs', readUrl)
    .action(async options => (await import('../commands/simulate-three-ds.ts')).threeDs(terminal, options))
}

function addKms(family: Command, terminal: Terminal): void {
  addCommand(family, 'kms', 'runs a simulated AWS KMS, for rehearsals of keys in KMS')
    .option('--port <n>', 'port to listen on; 0: any free port', readPort, 8392)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .action(async options => (await import('../commands/simulate-kms.ts')).kms(terminal, options))
}
