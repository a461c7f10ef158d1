-- Script of wrk: sends requests and prints figures at the end. Arguments: a seed, and the file of
-- the requests: method, path and body per line, separated by tabs. An @ in a path, or 36 of them in a
-- body, are replaced by a new UUID each time. A request with 36 times # is a claim: it is sent after each answer with
-- candidates, with the provider of one of them in the place of the #.
-- PAUSE_MS: pause of a connection after each answer.

local threads = {}
local requests = {}
local turn = 0
local random, format = math.random, string.format
local pause = tonumber(os.getenv("PAUSE_MS"))
-- Providers to claim from.
local chosen = {}
claim, searched, claimed, refused = nil, 0, 0, 0

if pause > 0 then
  function delay()
    return pause
  end
end

function setup(thread)
  threads[#threads + 1] = thread
  thread:set("number", #threads)
end

local function uuid()
  return format("%08x-%04x-4%03x-8%03x-%06x%06x", random(0, 4294967295), random(0, 65535),
    random(0, 4095), random(0, 4095), random(0, 16777215), random(0, 16777215))
end

-- Provider of the first candidate at or after this offset.
local function candidate(body, from)
  return body:match('"allocations": ?{"([%x-]+)"', from)
end

local function answered(status, _, body)
  if status == 204 then
    claimed = claimed + 1
  elseif status == 409 then
    refused = refused + 1
  elseif status == 200 then
    local last = body:find('"provider_summaries"', 1, true)
    local provider = candidate(body, random(1, last)) or candidate(body)
    if provider then
      searched = searched + 1
      chosen[#chosen + 1] = provider
    end
  end
end

function init(args)
  math.randomseed(tonumber(args[1]) + number)
  for line in io.lines(args[2]) do
    local method, path, body = line:match("^(%S+)\t(%S+)\t(.*)$")
    if body == "" then body = nil end
    local whole = wrk.format(method, path, nil, body)
    local before, after = whole:match("^(.-)@+(.*)$")
    if not before then
      requests[#requests + 1] = { whole }
    elseif after:find(("#"):rep(36), 1, true) then
      local between, rest = after:match("^(.-)" .. ("#"):rep(36) .. "(.*)$")
      claim = { before, between, rest }
      response = answered
    else
      requests[#requests + 1] = { before, after }
    end
  end
  -- Threads do not all begin with the same request.
  turn = random(0, #requests - 1)
end

function request()
  local provider = table.remove(chosen)
  if provider then
    return claim[1] .. uuid() .. claim[2] .. provider .. claim[3]
  end
  turn = turn % #requests + 1
  local it = requests[turn]
  if it[2] then
    return it[1] .. uuid() .. it[2]
  end
  return it[1]
end

-- Requests, microseconds and errors, then latencies in microseconds, each with the number of requests
-- that it stands for. Of the claims, the granted ones are counted, and half of those that were in
-- progress at the end.
function done(summary, latency)
  local errors = summary.errors
  local count = summary.requests
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  if threads[1]:get("claim") then
    count = 0
    for _, thread in ipairs(threads) do
      local searched, claimed, refused = thread:get("searched"), thread:get("claimed"), thread:get("refused")
      count = count + claimed + (searched - claimed - refused) / 2
      failed = failed - refused
    end
    -- As for other requests, the count includes the failed ones.
    count = count + failed
  end
  io.write(format("\nmeasured %d %d %d\n", count, summary.duration, failed))
  local function at(percent, share)
    io.write(format("latency %d %f\n", latency:percentile(percent), share * summary.requests))
  end
  for percent = 0, 98 do
    at(percent + 0.5, 0.01)
  end
  for part = 0, 99 do
    at(99 + (part + 0.5) / 100, 0.0001)
  end
end
