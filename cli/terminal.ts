// The terminal of a command: results go to standard output, messages to a person to standard error. Callers pass it in,
// so that a test can replace it.
import { userInfo } from 'node:os'
import type { Readable, Writable } from 'node:stream'

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

/** Prints one line for the person at the terminal. */
export function say(terminal: Terminal, line: string): void {
  terminal.stderr.write(`${line}\n`)
}

/** Prints the result of a command: `value` as JSON with `--json`, else `text`. */
export function print(terminal: Terminal, options: { json?: boolean }, value: unknown, text: string): void {
  if (options.json) terminal.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
  else if (text !== '') terminal.stdout.write(`${text}\n`)
}

/** A table with headings; without rows only the headings. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...all.map(row => (row[column] ?? '').length)))
  return all
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Lines of name and value. */
export function facts(pairs: Record<string, string | undefined>): string {
  const given = Object.entries(pairs).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  const width = Math.max(...given.map(([name]) => name.length))
  return given.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')
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
