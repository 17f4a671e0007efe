// The terminal of a command: results go to standard output, messages to a person to standard error. Callers pass it in,
// so that a test can replace it. Everything that commands print is cleaned here; a line feed stays only between the lines
// that a caller gives.
import { once } from 'node:events'
import { userInfo } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { format } from 'node:util'
import { cleanJson, cleanText } from '../src/clean-text.ts'
import { EXIT, Stop } from './exit.ts'

export interface Terminal {
  /** The words of the command line, without the program's name. */
  words?: readonly string[]
  env: NodeJS.ProcessEnv
  stdin: Readable
  stdout: Writable
  stderr: Writable
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  return { env: process.env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
}

/** What a library writes to the console may quote a server: from now on it is a line for the person. */
export function takeConsole(terminal: Terminal): void {
  for (const name of ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const)
    console[name] = (...words: unknown[]) => say(terminal, format(...words))
}

/** Prints one line for the person at the terminal. */
export function say(terminal: Terminal, line: string): void {
  terminal.stderr.write(`${cleanText(line)}\n`)
}

/** Writes a prompt, behind which the person types. */
export function prompt(terminal: Terminal, text: string): void {
  terminal.stderr.write(cleanText(text))
}

/** Prints the result of a command: `value` as JSON with `--json`, else one line or several; nothing if the line is empty. */
export function print(
  terminal: Terminal,
  options: { json?: boolean },
  value: unknown,
  lines: string | readonly string[],
): void {
  if (options.json) terminal.stdout.write(`${cleanJson(JSON.stringify(value, null, 2))}\n`)
  else if (lines !== '') for (const line of [lines].flat()) terminal.stdout.write(`${cleanText(line)}\n`)
}

/** Prints a line of NDJSON. Resolves when the reader of standard output takes more. */
export async function printJsonLine({ stdout }: Terminal, json: string): Promise<void> {
  if (!stdout.write(`${cleanJson(json)}\n`)) await once(stdout, 'drain')
}

/** Standard output for data that a program reads, and that nothing may change. So a terminal doesn't get it. */
export function dataOutput({ stdout }: Terminal): Writable {
  if ('isTTY' in stdout && stdout.isTTY)
    throw new Stop('a terminal does not show this data: name a file by --out, or send it to a program', EXIT.usage)
  return stdout
}

/** The lines of a table with headings; without rows only the headings. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [headings, ...rows].map(row => row.map(cleanText))
  const widths = headings.map((_, column) => Math.max(...all.map(row => (row[column] ?? '').length)))
  return all.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Lines of name and value. */
export function facts(pairs: Record<string, string | undefined>): string[] {
  const given = Object.entries(pairs).flatMap(([name, value]) =>
    value === undefined ? [] : [[cleanText(name), value] as const],
  )
  const width = Math.max(...given.map(([name]) => name.length))
  return given.map(([name, value]) => `${name.padEnd(width)}  ${value}`)
}

/** Lines with an empty one between each two parts. */
export function paragraphs(parts: readonly (string | readonly string[])[]): string[] {
  return parts.flatMap((part, at) => [at === 0 ? [] : '', part].flat(2))
}

/** A time as text in UTC; `-` for null. */
export function moment(ms: number | null): string {
  return ms === null ? '-' : new Date(ms).toISOString()
}

/** Reads all of standard input as text. */
export async function readAll(terminal: Terminal, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of terminal.stdin as AsyncIterable<Buffer | string>) {
    const piece = Buffer.from(chunk as Buffer)
    bytes += piece.length
    chunks.push(piece)
    if (bytes > bytesMax) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The account of the user at the terminal. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    // An account may have no name, as in containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** The account of the user at the terminal, for audit rows. */
export function actor(): string {
  return `cli:${userName()}`
}
