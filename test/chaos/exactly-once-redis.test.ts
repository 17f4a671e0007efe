// A migration over Redis, disturbed.
import { beforeAll, expect, it } from 'vitest'
import { childrenRunning, describeChaos } from './bundle.ts'
import { disturb } from './exactly-once.ts'

describeChaos('a migration in whose midst', 'redis', chaos => {
  beforeAll(() => chaos.installation.startWorkers({ roles: ['bulk'], processes: 2 }), 60_000)

  it('every worker process is killed, goes on by itself and has every effect once', async () => {
    const runs = await disturb(chaos, async () => {
      for (const pid of childrenRunning('worker-process')) process.kill(pid, 'SIGKILL')
    })
    expect(runs).toBe(1)
  }, 120_000)

  it('the command is killed, is continued by the same command and has every effect once', async () => {
    const runs = await disturb(chaos, async ({ child }) => {
      await child.kill9()
    })
    expect(runs).toBe(2)
  }, 120_000)

  it('PostgreSQL is killed, has every effect once', async () => {
    await disturb(chaos, async () => {
      await chaos.postgres.kill9()
      await chaos.postgres.start()
    })
  }, 120_000)

  it('Redis is restarted, has every effect once', async () => {
    await disturb(chaos, () => chaos.redis.restart())
  }, 120_000)

  it('Redis is killed, has every effect once', async () => {
    await disturb(chaos, async () => {
      await chaos.redis.kill9()
      await chaos.redis.restart()
    })
  }, 120_000)

  it('Redis loses everything, has every effect once', async () => {
    const runs = await disturb(chaos, () => chaos.redis.flush())
    expect(runs).toBe(1)
  }, 120_000)
})
