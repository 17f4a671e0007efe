-- When a worker that has a place for report files last said that it makes reports. A worker without such a place reads
-- from it whether a request for a report has to be refused, or will be worked by another host.
alter table tokenmill.installation add column reports_made_at timestamptz;
