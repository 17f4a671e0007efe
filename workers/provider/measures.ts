// How many scheme tokens wait for the network, and how many calls are to be undone.
import * as intents from '../../src/store/provider/scheme-intents.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { OpenMeasures, Waiting } from '../process/installation-metrics.ts'

const CALLS = ['provision', 'delete', 'ask'] as const

export const schemeMeasures: OpenMeasures = ({ gauge, one, all, age }) => {
  const open = gauge('scheme_open', 'Scheme tokens with an outstanding call to the network.', { what: [] })
  const oldest = gauge('scheme_open_oldest_seconds', 'Age of the oldest of them.', { what: [] })
  const set = (what: string, waiting: Waiting) => {
    open.set({ what }, waiting.rows)
    oldest.set({ what }, age(waiting))
  }
  return [
    one(
      async db => ({ calls: await storedSchemes.countOpen(db), owed: await intents.countOwed(db) }),
      ({ calls, owed }) => {
        for (const what of CALLS) set(what, calls.find(count => count.what === what) ?? { rows: 0, oldest: null })
        set('reversal', owed)
      },
      all(open, oldest),
    ),
  ]
}
