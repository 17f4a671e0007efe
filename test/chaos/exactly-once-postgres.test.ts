// A migration with queues on PostgreSQL, disturbed while it runs.
import { beforeAll, expect, it } from 'vitest'
import { type Chaos, childrenRunning, describeChaos, kill9, newScope } from './bundle.ts'
import { deliverTwice } from './deliver-twice.ts'
import { disturb, expectExactlyOnce, newFile } from './migration.ts'

describeChaos('every effect of a migration happens once', 'postgres', chaos => {
  beforeAll(() => chaos.installation.startWorkers({ roles: ['bulk'], processes: 2 }))
  const file = async ({ installation }: Chaos) => newFile(installation.dataDir, await newScope(chaos))

  it('though every worker process was killed, and the run goes on by itself', async () => {
    const runs = await disturb(chaos, await file(chaos), async () => kill9(childrenRunning('worker-process')))
    expect(runs).toBe(1)
  })

  it('though the command was killed, and the same command continues it', async () => {
    const runs = await disturb(chaos, await file(chaos), ({ child }) => child.kill9())
    expect(runs).toBe(2)
  })

  it('though PostgreSQL was killed, queues and store in one, and run and workers go on by themselves', async () => {
    const workers = childrenRunning('worker-process')
    const runs = await disturb(chaos, await file(chaos), async () => {
      await chaos.postgres.kill9()
      await chaos.postgres.start()
    })
    expect(runs).toBe(1)
    expect(childrenRunning('worker-process')).toEqual(workers)
  })

  it('though every job was delivered twice', async () => {
    const cards = await file(chaos)
    await expectExactlyOnce(chaos, cards, await deliverTwice(chaos, cards))
  })
})
