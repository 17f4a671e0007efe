import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe } from 'vitest'
import type { Engine } from '../support/engines.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

const admin = async (sql: string) => {
  const c = new pg.Client('postgres://postgres@127.0.0.1:5901/postgres')
  await c.connect()
  await c.query(sql)
  await c.end()
}
export async function freshDatabase() {
  const name = `t_${randomBytes(5).toString('hex')}`
  await admin(`create database ${name}`)
  return { url: `postgres://postgres@127.0.0.1:5901/${name}`, drop: () => admin(`drop database ${name} with (force)`) }
}
export function describeEngines(name: string, laws: (e: Engine) => void) {
  for (const which of ['redis', 'postgres'] as const)
    describe(`${name} (${which})`, () => {
      const e = {
        name: which,
        prefix: `{t-${randomBytes(4).toString('hex')}}`,
        redisUrls: undefined as string[] | undefined,
        databaseUrl: '',
      }
      let r: RedisServer | undefined
      let d: Awaited<ReturnType<typeof freshDatabase>> | undefined
      beforeAll(async () => {
        if (which === 'redis') {
          r = await startRedis()
          e.redisUrls = [r.url]
        } else {
          d = await freshDatabase()
          e.databaseUrl = d.url
        }
      })
      afterAll(async () => {
        await r?.stop()
        await d?.drop()
      })
      laws(e)
    })
}
