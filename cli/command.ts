// What commands share: the option `--json`, options of acts, and readers that check arguments before anything is
// opened.
import { type Command, InvalidArgumentError, Option } from 'commander'

export interface JsonOption {
  json?: boolean
}

/** Adds a command that does something to `parent`. `usage`: its name and arguments. */
export function addCommand(parent: Command, usage: string, description: string): Command {
  return parent.command(usage).description(description).addOption(jsonOption())
}

export const jsonOption = () => new Option('--json', 'print machine-readable JSON on standard output')

/** How long a command that sends many chunks waits for an answer. */
export const giveUpOption = () =>
  new Option(
    '--give-up-after <seconds>',
    'end with 1 after so long without any answer; the same command goes on (default: wait)',
  ).argParser(readCount)

/** Adds a word that only holds further commands. */
export function addFamily(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description)
}

/** Adds the options `--operator` and `--reason` to a command that changes something. */
export function withActor(command: Command, { needsReason = false } = {}): Command {
  return command
    .option('--operator <file>', 'file of a client with the role ADMIN, which signs the act (default: user@host)')
    .addOption(new Option('--reason <text>', 'why; kept with the act').makeOptionMandatory(needsReason))
}

/** A UUID in lower case. */
export function readUuid(text: string): string {
  if (!/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text)) throw new InvalidArgumentError('It is not a UUID.')
  return text.toLowerCase()
}

/** A reader for an option that may be repeated: collects the values. */
export function collect<T>(read: (text: string) => T): (text: string, previous: T[] | undefined) => T[] {
  return (text, previous = []) => [...previous, read(text)]
}

/** Reads a time: RFC 3339 with its offset, or a date, which means midnight UTC. Returns ms since the epoch. */
export function readMoment(text: string): number {
  const form = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/
  const ms = form.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) throw new InvalidArgumentError('Give a time such as 2030-01-31T12:00:00Z, or a date.')
  return ms
}

export function readCount(text: string): number {
  const count = Number(text)
  if (!/^\d{1,9}$/.test(text) || count < 1) throw new InvalidArgumentError('It is not a whole number of 1 or more.')
  return count
}

export function readBetween(least: number, most: number): (text: string) => number {
  return text => {
    const value = Number(text)
    if (!/^\d{1,6}$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`It is not a whole number from ${least} to ${most}.`)
    return value
  }
}

/** A bound: a number of rows, or a share such as 2%. */
export function readRowsMax(text: string): { rows: number } | { share: number } {
  const [, number, percent] = /^(\d{1,9}(?:\.\d{1,3})?)(%?)$/.exec(text) ?? []
  const value = Number(number)
  if (percent === '%' && value <= 100) return { share: value / 100 }
  if (percent === '' && Number.isInteger(value)) return { rows: value }
  throw new InvalidArgumentError('Give a number of rows, or a share of 0% to 100%.')
}
