// Counts exactly how many different texts were added, by their keyed digests.
import { digestIn, keyedDigest, openPartitions, PARTITIONS, type SpillOptions } from '../rows/partitions.ts'

export interface TallyEnd {
  /** How many texts were added. */
  added: number
  distinct: number
  /** How many different texts were added more than once. */
  repeated: number
  /** How often the most frequent text was added. */
  most: number
}

export interface Tally {
  add(text: string): void
  end(): TallyEnd
  /** Removes the files; `end` doesn't. */
  close(): void
}

export function openTally(options: SpillOptions = {}): Tally {
  const digestOf = keyedDigest()
  const partitions = openPartitions(0, options)
  let added = 0
  return {
    add(text) {
      partitions.add(digestOf(text))
      added += 1
    },
    end() {
      const end: TallyEnd = { added, distinct: 0, repeated: 0, most: 0 }
      for (let part = 0; part < PARTITIONS; part++) {
        const counts = new Map<string, number>()
        for (const record of partitions.recordsOf(part)) {
          const name = digestIn(record)
          counts.set(name, (counts.get(name) ?? 0) + 1)
        }
        end.distinct += counts.size
        for (const count of counts.values()) {
          if (count > 1) end.repeated += 1
          if (count > end.most) end.most = count
        }
      }
      return end
    },
    close: partitions.close,
  }
}
