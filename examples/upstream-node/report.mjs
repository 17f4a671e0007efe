// node report.mjs ENTITY DAY OUT.csv: asks for the settlement report of a day (2026-01-31) and writes its file.
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { openHttp } from './client.mjs'

const [entity, day, out] = process.argv.slice(2)
if (!out) {
  console.error('usage: node report.mjs ENTITY DAY OUT.csv')
  process.exit(64)
}
const client = await openHttp()
const { reportUid } = await client.orderReport({
  reportType: 'MERCHANT_SETTLEMENT_REPORT',
  reportEntityUid: entity,
  reportParameter: { clearingDate: day },
  mimeType: 'text/csv',
})
await pipeline(await client.reportFile(reportUid), createWriteStream(out))
client.close()
console.log(`${out}: report ${reportUid}`)
