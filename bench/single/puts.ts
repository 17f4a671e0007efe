// Case (l): as many PUTs of a card as 50 connections send one after the other, through gateway, queue, worker and store.
import type { Installation } from '../../test/support/installation.ts'
import { openSender } from '../put.ts'
import { watchProcessor } from './processor.ts'
import type { SingleRun } from './run.ts'

const CONNECTIONS = 50

/** In the processor time, `bench` is the sender of the requests. */
export async function runPuts(installation: Installation, rows: number): Promise<SingleRun> {
  const { body, put } = await openSender(installation)
  const bodies: string[] = []
  for (let index = 0; index < rows; index += 1) bodies.push(await body(index))
  const processor = await watchProcessor(installation)
  const began = performance.now()
  let failed = 0
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let next = bodies.pop(); next !== undefined; next = bodies.pop())
        if ((await put(next)).status !== 200) failed += 1
    }),
  )
  const perSecond = (rows * 1000) / (performance.now() - began)
  const used = processor(rows)
  if (failed > 0) throw new Error(`${failed} of ${rows} PUTs failed`)
  return { rows, perSecond, processor: used }
}
