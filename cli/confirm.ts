// Asks a person before a command does what can't be undone.
import { createInterface } from 'node:readline/promises'
import { cleanText } from '../src/clean-text.ts'
import { EXIT, Stop } from './exit.ts'
import type { Terminal } from './terminal.ts'

/** Asks a yes-or-no question. Throws `Stop` for any answer but yes. */
export async function confirm({ stdin, stderr }: Terminal, question: string): Promise<void> {
  if (!('isTTY' in stdin && stdin.isTTY)) throw new Stop(`${question} Say so with --yes.`, EXIT.usage)
  const lines = createInterface({ input: stdin, output: stderr })
  try {
    const answer = await lines.question(cleanText(`${question} [y/N] `))
    if (!/^y(es)?$/i.test(answer.trim())) throw new Stop('Nothing was changed.')
  } finally {
    lines.close()
  }
}
