// Reads the lines that a bench printed, that of an older checkout too: it prints PUTs as text, and its bench of the ledger
// names some members otherwise.
import type { Line } from '../line.ts'

const PUTS = /^(\w: .*?) ?\((redis|postgres)\): (\d+) PUTs, p50 ([\d.]+) ms, p99 ([\d.]+) ms/

export function readLines(output: string): Line[] {
  return output.split('\n').flatMap(text => {
    if (text.startsWith('{')) return lineOf(JSON.parse(text) as Line)
    const puts = PUTS.exec(text)
    if (!puts) return []
    const [, name = '', engine = '', requests, p50, p99] = puts
    return { case: name, engine, rows: Number(requests), p50: Number(p50), p99: Number(p99) }
  })
}

function lineOf(line: Line): Line {
  const { copyPerSecond, processorUs, ...rest } = line
  if (copyPerSecond === undefined) return line
  const processor = processorUs as NonNullable<Line['processor']>
  const named = { case: `o: ${line.case}`, limit: 'COPY', limitPerSecond: Number(copyPerSecond) }
  return { ...rest, ...named, ...(processor ? { processor } : {}) }
}
