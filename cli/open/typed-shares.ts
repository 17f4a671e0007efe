// Shares of a key that custodians type, one after another. Nothing that is typed is shown, and each line is checked
// before the next is asked for. Where standard input isn't a terminal, the texts of the shares are read from it.
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import type { NamedShare } from '../../src/vault/shares/key-shares.ts'
import { HEADING, isUnreadable, LINES, readLine, readShare } from '../../src/vault/shares/share-text.ts'
import { EXIT, Stop } from '../exit.ts'
import { prompt, readAll, say, type Terminal } from '../terminal.ts'

const TEXT_BYTES_MAX = 64 * 1024

export async function readTypedShares(terminal: Terminal): Promise<NamedShare[]> {
  return 'isTTY' in terminal.stdin && terminal.stdin.isTTY ? askForShares(terminal) : readPipedShares(terminal)
}

/** Texts of shares, each with its heading. */
async function readPipedShares(terminal: Terminal): Promise<NamedShare[]> {
  const [before = '', ...texts] = (await readAll(terminal, TEXT_BYTES_MAX)).split(HEADING)
  if (texts.length === 0 || before.trim() !== '')
    throw new Stop('name the files of shares, or type the shares at a terminal', EXIT.usage)
  return texts.map((text, at) => {
    const share = readShare(text)
    const name = `share ${at + 1} of standard input`
    if (isUnreadable(share)) throw new Stop(`${name} is damaged in line ${share.lines.join(', ') || 'its checksum'}`)
    return { name, share }
  })
}

async function askForShares(terminal: Terminal): Promise<NamedShare[]> {
  say(terminal, `Type the ${LINES} lines of one share after another. Nothing that you type is shown.`)
  const lines = openHiddenLines(terminal)
  try {
    const shares: NamedShare[] = []
    let needed = 1
    while (shares.length < needed) {
      const number = shares.length + 1
      const read = readShare(await askForLines(terminal, lines, number))
      if (isUnreadable(read)) {
        say(terminal, `The checksum of share ${number} is wrong, though each line's is right; type it again.`)
        continue
      }
      shares.push({ name: `the share typed as number ${number}`, share: read })
      needed = read.threshold
      say(terminal, `Share ${read.index} of ${read.of} of ${read.kekId}, set ${read.setId}: ${left(needed - number)}.`)
    }
    return shares
  } finally {
    lines.close()
  }
}

const left = (count: number) => (count > 0 ? `${count} more to type` : 'enough')

async function askForLines(terminal: Terminal, lines: HiddenLines, number: number): Promise<string> {
  const read: string[] = []
  while (read.length < LINES) {
    const at = read.length + 1
    const line = (await lines.ask(`Share ${number}, line ${at}: `)).trim()
    // A person may paste a whole file, which has these lines, too.
    if (line === '' || line === HEADING || line.startsWith('#')) continue
    if (readLine(line, at) === undefined) say(terminal, `Line ${at} is wrong; type it again.`)
    else read.push(line)
  }
  return read.join('\n')
}

interface HiddenLines {
  ask(text: string): Promise<string>
  close(): void
}

/** Lines of a terminal. The line editor writes into nothing, so no letter is shown. */
function openHiddenLines(terminal: Terminal): HiddenLines {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const editor = createInterface({ input: terminal.stdin, output: nowhere, terminal: true, historySize: 0 })
  // Pasted lines come faster than they are asked for.
  const early: string[] = []
  let heard: ((line: string | undefined) => void) | undefined
  let ended = false
  const give = (line: string | undefined) => {
    heard?.(line)
    heard = undefined
  }
  const end = () => {
    ended = true
    give(undefined)
  }
  editor.on('line', line => (heard ? give(line) : early.push(line)))
  editor.on('SIGINT', end)
  editor.on('close', end)
  const next = () =>
    new Promise<string | undefined>(resolve => {
      if (early.length > 0 || ended) resolve(early.shift())
      else heard = resolve
    })
  return {
    ask: async text => {
      prompt(terminal, text)
      const line = await next()
      say(terminal, '')
      if (line === undefined) throw new Stop('Nothing was made.', EXIT.interrupted)
      return line
    },
    close: () => editor.close(),
  }
}
